import type { PictureSize } from '../../bytes/picture-size.ts';
import { CACHE_DEFAULT_MS, NO_TRAITS, readSystemItem, textsOf, toolCall } from '../common.ts';
import type {
  CachePrices,
  CallArguments,
  DialectDescriptor,
  HasFrames,
  ResultPlace,
} from '../descriptor.ts';
import { MESSAGES_API } from '../apis.ts';
import { type Answer, type Cleared, DialectAnswer } from '../dialect-answer.ts';
import {
  asCount,
  asList,
  asRecord,
  asText,
  type Fields,
  isRecord,
  joinParagraphs,
} from '../../bytes/json-fields.ts';
import { THINKING_TYPES } from '../../conversation/fingerprint.ts';
import { thoughtId } from '../../conversation/thoughts.ts';
import { typedInOutput, readUserText } from '../../conversation/human-text.ts';
import { projectInUser } from '../../conversation/stated-project.ts';
import type { ItemTraits } from '../../conversation/view.ts';
import {
  elementsOf,
  memberValue,
  opensList,
  opensObject,
  parseSpan,
  type Span,
} from '../../bytes/json-scan.ts';

// `tokenRatio`, Anthropic's count divided by svc's estimate, was measured on Claude Code's sessions (bench/README.md).
const CACHE: CachePrices = {
  read: 0.1,
  write: 1.25,
  writeHour: 2,
  isKnown: true,
  tokenRatio: 1.265,
};

export const MESSAGES: DialectDescriptor = {
  ...MESSAGES_API,
  listKey: 'messages',
  takesTextInput: false,
  textPartType: 'text',
  cacheKeyNamesSession: false,
  readItem: readMessagesItem,
  callArguments,
  resultPlaces,
  createAnswerParser: (options) => new MessagesAnswer(options),
  clearsOutputs: true,
  cachePrices: CACHE,
  cacheDefaultMs: () => CACHE_DEFAULT_MS,
  pictureTokens,
};

// Anthropic's vision guide: a picture is scaled down until its longer edge has at most 1,568 pixels and it has at most
// about 1,600 tokens. It has (width * height) / 750 tokens.
const EDGE_MAX = 1_568;
const PIXELS_A_TOKEN = 750;
const PICTURE_TOKENS_MAX = 1_600;

function pictureTokens(size: PictureSize | undefined): number {
  if (size === undefined) return PICTURE_TOKENS_MAX;
  const scale = Math.min(1, EDGE_MAX / Math.max(size.width, size.height));
  const pixels = size.width * scale * (size.height * scale);
  return Math.min(PICTURE_TOKENS_MAX, Math.max(1, Math.ceil(pixels / PIXELS_A_TOKEN)));
}

/** Reads answers of the Messages API. Of thinking it reads only the signatures; tool arguments are skipped. */
class MessagesAnswer extends DialectAnswer {
  #callsTools = false;
  #lastBlock: unknown;
  #cleared: Cleared | undefined;

  /** Reads an event. Most have only a plain text, which is read without JSON.parse: that saves a fifth of the time. */
  override readEvent(data: string): void {
    const [, text] = PLAIN_TEXT.exec(data) ?? [];
    if (text === undefined) super.readEvent(data);
    else this.text.append(text);
  }

  readBody(body: unknown): void {
    const message = asRecord(body);
    this.isFailed = isRecord(message['error']);
    this.noteNames(message);
    this.noteLostThoughts(message);
    this.#readCleared(message);
    for (const [index, block] of asList(message['content']).entries()) {
      this.#startBlock(index, asRecord(block));
    }
    this.thoughts.completeAll();
    this.#readUsage(message['usage']);
    this.#stop(message['stop_reason']);
    this.isComplete = message['type'] === 'message' && typeof message['stop_reason'] === 'string';
  }

  override answer(): Answer {
    const answer = super.answer();
    return this.#cleared === undefined ? answer : { ...answer, cleared: this.#cleared };
  }

  protected isCalling(): boolean {
    return this.#callsTools;
  }

  protected readParsed(event: Fields): void {
    switch (event['type']) {
      case 'message_start':
        this.noteNames(asRecord(event['message']));
        this.noteLostThoughts(asRecord(event['message']));
        this.#readUsage(asRecord(event['message'])['usage']);
        break;
      case 'content_block_start':
        this.#startBlock(event['index'], asRecord(event['content_block']));
        break;
      case 'content_block_delta':
        this.#readDelta(event['index'], asRecord(event['delta']));
        break;
      case 'content_block_stop':
        this.thoughts.complete(event['index']);
        break;
      case 'message_delta':
        this.noteLostThoughts(event);
        this.#readCleared(event);
        this.#readUsage(event['usage']);
        this.#stop(asRecord(event['delta'])['stop_reason']);
        break;
      case 'message_stop':
        this.thoughts.completeAll();
        this.isComplete = true;
        this.hasEnded = true;
        break;
      default: // An unknown kind of event has no facts for svc.
    }
  }

  // Joins adjacent text blocks to one paragraph, as visibleText() does with the item that the client sends back.
  #startBlock(index: unknown, block: Fields): void {
    const type = block['type'];
    if (type === 'text' && this.#lastBlock !== undefined && this.#lastBlock !== 'text') {
      this.text.open();
    }
    this.#lastBlock = type;
    if (type === 'text') this.text.append(asText(block['text']));
    if (type === 'tool_use') this.#callsTools = true;
    if (SIGNED.has(type)) this.thoughts.append(index, block['signature']);
    if (type === 'redacted_thinking') this.thoughts.append(index, block['data']);
  }

  #readDelta(index: unknown, delta: Fields): void {
    if (delta['type'] === 'text_delta') this.text.append(asText(delta['text']));
    if (delta['type'] === 'signature_delta') this.thoughts.append(index, delta['signature']);
  }

  #stop(reason: unknown): void {
    if (CALLING.has(reason)) this.#callsTools = true;
    // A refusal is not stored, because a recalled refusal would make the model refuse again.
    else if (reason === 'refusal') this.isFailed = true;
    else if (typeof reason === 'string' && !WHOLE.has(reason)) this.isCutShort = true;
  }

  /** Reads how many tool outputs the provider has removed ("Context editing" of its documents, 2026-08-22). */
  #readCleared({ context_management: told }: Fields): void {
    const edits = asList(asRecord(told)['applied_edits']).map(asRecord);
    const clearings = edits.filter(({ type }) => asText(type).startsWith('clear_tool_uses_'));
    if (clearings.length === 0) return;
    this.#cleared = {
      outputs: sum(clearings.map((edit) => asCount(edit['cleared_tool_uses']))),
      tokens: sum(clearings.map((edit) => asCount(edit['cleared_input_tokens']))),
    };
  }

  #readUsage(value: unknown): void {
    if (!isRecord(value)) return;
    this.noteUsage(value);
    const before = this.usage;
    const hour = asRecord(value['cache_creation'])['ephemeral_1h_input_tokens'];
    const cacheWriteHour = asCount(hour, before?.cacheWriteHour);
    this.usage = {
      input: asCount(value['input_tokens'], before?.input),
      cacheRead: asCount(value['cache_read_input_tokens'], before?.cacheRead),
      cacheWrite: asCount(value['cache_creation_input_tokens'], before?.cacheWrite),
      output: asCount(value['output_tokens'], before?.output),
      ...(cacheWriteHour > 0 ? { cacheWriteHour } : {}),
    };
  }
}

/** Matches an event that has only a text, if no character of the text is escaped. */
const PLAIN_TEXT =
  /^\{"type":"content_block_delta","index":\d+,"delta":\{"type":"text_delta","text":"([^"\\]*)"\} *\}$/;

/** Stop reasons after which the client continues the conversation without the user. */
const CALLING: ReadonlySet<unknown> = new Set(['tool_use', 'pause_turn', 'compaction']);
/** Block types with a signature that Anthropic checks (the types of its SDK, 2026-09). */
const SIGNED: ReadonlySet<unknown> = new Set(['thinking', 'connector_text']);
/** Stop reasons of a whole answer. `stop` is from other providers. A reason that #stop() does not know means a cut. */
const WHOLE: ReadonlySet<string> = new Set(['end_turn', 'stop_sequence', 'stop']);

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Reads an item of Messages: a role, and a string or a list of typed blocks. Newer clients also send role system. */
function readMessagesItem(value: unknown, hasFrames?: HasFrames): ItemTraits {
  const message = asRecord(value);
  const content = message['content'];
  switch (message['role']) {
    case 'user':
      return readUser(content, hasFrames);
    case 'assistant':
      return readAssistant(content);
    case 'system':
      return readSystemItem(textsOf(content));
    default:
      return NO_TRAITS;
  }
}

function readUser(content: unknown, hasFrames: HasFrames | undefined): ItemTraits {
  const texts: string[] = typeof content === 'string' ? [content] : [];
  const toolResultIds: string[] = [];
  const framed: string[] = [];
  for (const value of asList(content)) {
    const block = asRecord(value);
    const type = asText(block['type']);
    const { text } = block;
    if (type === 'text' && typeof text === 'string') texts.push(text);
    if (!isResult(type)) continue;
    toolResultIds.push(asText(block['tool_use_id']));
    // Claude Code appends what the user types during a tool call to the tool's output.
    const last = type === 'tool_result' ? textsOf(block['content']).at(-1) : undefined;
    const typed = typedInOutput(last ?? '');
    if (typed !== '') framed.push(typed);
  }
  const said = readUserText(texts, toolResultIds.length > 0);
  return {
    ...NO_TRAITS,
    role: 'user',
    ...said,
    ...(framed.length > 0 && { holdsFrame: true as const }),
    ...(framed.length > 0 &&
      hasFrames?.() === true && {
        humanText: [...framed, said.humanText].filter((text) => text !== '').join('\n'),
        isUnverified: true,
      }),
    toolResultIds,
    ...projectInUser(texts),
  };
}

function readAssistant(content: unknown): ItemTraits {
  const blocks = asList(content);
  const calls = blocks.map(asRecord).filter((block) => asText(block['type']).endsWith('tool_use'));
  return {
    ...NO_TRAITS,
    role: 'assistant',
    assistantText: typeof content === 'string' ? content.trim() : visibleText(blocks),
    toolCalls: calls.map((block) => toolCall(block['id'], block['name'])),
    toolResultIds: blocks
      .map(asRecord)
      .filter((block) => isResult(asText(block['type'])))
      .map((block) => asText(block['tool_use_id'])),
    hasReasoning: blocks.some((block) => isThinking(block) || isCompaction(block)),
    thoughts: thoughtsIn(blocks),
    ...(blocks.some(isCompaction) && { isCompaction: true }),
    ...(blocks.length > 0 && blocks.every(isThinking) && { isThought: true }),
  };
}

function isThinking(value: unknown): boolean {
  return THINKING_TYPES.has(asText(asRecord(value)['type']));
}

function isCompaction(value: unknown): boolean {
  return asRecord(value)['type'] === 'compaction';
}

/** Returns the ids of signed thinking. Other providers send thinking without a signature; such thinking has no id. */
function thoughtsIn(blocks: readonly unknown[]): readonly string[] {
  const signed = blocks.filter(isThinking).map((value) => {
    const block = asRecord(value);
    return asText(block['type'] === 'redacted_thinking' ? block['data'] : block['signature']);
  });
  return signed.filter((signature) => signature !== '').map(thoughtId);
}

/** Matches `tool_result`, and results of the provider's own tools: `web_search_tool_result`, … */
function isResult(type: string): boolean {
  return type.endsWith('tool_result');
}

/**
 * Joins the text blocks. Adjacent text blocks are one paragraph, because citations split a sentence into blocks. Text
 * after a block of another type is a new paragraph.
 */
function visibleText(blocks: readonly unknown[]): string {
  const paragraphs: string[] = [''];
  for (const value of blocks) {
    const block = asRecord(value);
    if (block['type'] === 'text')
      paragraphs.push(`${paragraphs.pop() ?? ''}${asText(block['text'])}`);
    else paragraphs.push('');
  }
  return joinParagraphs(paragraphs);
}

function callArguments(message: Fields): readonly CallArguments[] {
  return asList(message['content'])
    .map(asRecord)
    .map((block) => [asText(block['id']), block['input']]);
}

function resultPlaces(bytes: Buffer, item: Span): readonly ResultPlace[] {
  const content = memberValue(bytes, item.start, 'content');
  if (content === undefined || !opensList(bytes, content.start)) return [];
  const results = elementsOf(bytes, content).filter((open) => {
    const type = opensObject(bytes, open) ? memberValue(bytes, open, 'type') : undefined;
    return type !== undefined && parseSpan(bytes, type) === 'tool_result';
  });
  return results.map((open) => ({ open, idName: 'tool_use_id', textName: 'content' }));
}
