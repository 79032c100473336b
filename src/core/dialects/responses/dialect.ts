import type { CallArguments, DialectDescriptor, ResultPlace } from '../descriptor.ts';
import {
  OPENAI_CACHE,
  openAiCacheMs,
  openAiPictureTokens,
  NO_TRAITS,
  readSystemItem,
  textsOf,
  toolCall,
} from '../common.ts';
import { RESPONSES_API } from '../apis.ts';
import { DialectAnswer, type LargeEvent } from '../dialect-answer.ts';
import {
  asList,
  asRecord,
  asText,
  type Fields,
  isRecord,
  parseJson,
} from '../../bytes/json-fields.ts';
import { readUserText, type UserText } from '../../conversation/human-text.ts';
import { thoughtId } from '../../conversation/thoughts.ts';
import { projectInUser } from '../../conversation/stated-project.ts';
import type { ItemTraits } from '../../conversation/view.ts';
import type { Span } from '../../bytes/json-scan.ts';

export const RESPONSES: DialectDescriptor = {
  ...RESPONSES_API,
  listKey: 'input',
  takesTextInput: true,
  textPartType: 'input_text',
  cacheKeyNamesSession: true,
  readItem: readResponsesItem,
  callArguments,
  resultPlaces,
  createAnswerParser: (options) => new ResponsesAnswer(options),
  clearsOutputs: false,
  cachePrices: OPENAI_CACHE,
  cacheDefaultMs: openAiCacheMs,
  pictureTokens: openAiPictureTokens,
};

/** Reads answers of the Responses API. Reasoning summaries, arguments and audio are skipped. */
class ResponsesAnswer extends DialectAnswer {
  /** The paragraph of each message, by the message's index in the output, or by its id if events state no index. */
  readonly #paragraphs = new Map<unknown, number>();
  // The ids of the calls that the client must answer, and of those calls whose results are in this answer already.
  readonly #waiting = new Set<string>();
  readonly #answered = new Set<string>();

  readBody(body: unknown): void {
    this.#end(asRecord(body));
  }

  /**
   * Finds the end of the answer in an event over the size limit. The last event of a stream may be so long, because it
   * repeats the whole output with all pictures.
   */
  override skipEvent({ head, tail }: LargeEvent): void {
    const status = LARGE_END.exec(head)?.[1];
    if (status === undefined) return;
    this.#end({ status, usage: lastUsage(tail) });
  }

  protected isCalling(): boolean {
    return [...this.#waiting].some((id) => !this.#answered.has(id));
  }

  protected readParsed(event: Fields): void {
    switch (event['type']) {
      case 'response.output_text.delta':
        this.#append(event);
        break;
      case 'response.created':
        this.noteNames(asRecord(event['response']));
        this.noteLostThoughts(asRecord(event['response']));
        break;
      case 'response.output_item.added':
        this.#readItem(asRecord(event['item']));
        break;
      case 'response.output_item.done':
        this.#readItem(asRecord(event['item']));
        this.#readThought(asRecord(event['item']));
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        this.#end(asRecord(event['response']));
        break;
      case 'codex.rate_limits':
        this.limits = event;
        break;
      default: // An unknown kind of event has no facts for svc.
    }
  }

  /** Appends a text delta. Each message is a paragraph, because the client will send it back as an item. */
  #append(event: Fields): void {
    const key = event['output_index'] ?? event['item_id'];
    const paragraph = this.#paragraphs.get(key) ?? this.text.open();
    this.#paragraphs.set(key, paragraph);
    this.text.select(paragraph);
    this.text.append(asText(event['delta']));
  }

  #readItem(item: Fields): void {
    const type = asText(item['type']);
    const id = isCall(type) ? clientCallId(item) : undefined;
    if (id !== undefined && item['execution'] !== 'server') this.#waiting.add(id);
    if (isResult(type)) this.#answered.add(resultId(item));
  }

  #readThought(item: Fields): void {
    if (item['type'] === 'reasoning') this.thoughts.add(item['encrypted_content'] ?? item['id']);
  }

  #end(response: Fields): void {
    this.hasEnded = true;
    this.noteNames(response);
    this.noteLostThoughts(response);
    const output = asList(response['output']).map(asRecord);
    for (const item of output) {
      this.#readItem(item);
      this.#readThought(item);
    }
    if (this.text.isEmpty) this.#readMessages(output);
    this.readOpenAiUsage(response['usage'], 'input_tokens', 'output_tokens');
    this.isFailed ||= response['status'] === 'failed' || isRecord(response['error']);
    this.isComplete = response['status'] === 'completed' || response['status'] === 'incomplete';
    if (response['status'] !== 'incomplete') return;
    // A filtered text is like a refusal: the user sees it, but svc does not store it.
    const { reason } = asRecord(response['incomplete_details']);
    if (reason === 'content_filter') this.isFailed = true;
    else this.isCutShort = true;
  }

  /** Reads the messages of an answer whose text comes only with its end. */
  #readMessages(output: readonly Fields[]): void {
    for (const item of output.filter(({ type }) => type === 'message')) {
      this.text.open();
      this.text.append(visibleText(item['content']));
    }
  }
}

const LARGE_END = /"type"\s*:\s*"response\.(completed|incomplete|failed)"/;

/** Returns the last `usage` in the end of an event. A usage object has no strings, so counting braces finds its end. */
function lastUsage(tail: string): unknown {
  const [, open = ''] = /^[^]*"usage"\s*:\s*(\{[^]*)$/.exec(tail) ?? [];
  let depth = 0;
  for (let at = 0; at < open.length; at += 1) {
    if (open[at] === '{') depth += 1;
    if (open[at] === '}') depth -= 1;
    if (depth === 0) return parseJson(open.slice(0, at + 1));
  }
  return undefined;
}

/** Reads an item of Responses. An item without a type is a message; a string is the user's text. */
function readResponsesItem(value: unknown): ItemTraits {
  if (typeof value === 'string') return readUser({ content: value });
  const item = asRecord(value);
  const type = item['type'] ?? 'message';
  if (type === 'message') return readMessage(item);
  if (typeof type !== 'string') return NO_TRAITS;
  if (type === 'item_reference') return { ...NO_TRAITS, isReference: true };
  if (type === 'compaction_trigger') return { ...NO_TRAITS, clientOrder: 'compaction' };
  if (type === 'reasoning') return readReasoning(item);
  if (COMPACTED.has(type)) {
    return { ...NO_TRAITS, hasReasoning: true, isSummary: true, isCompaction: true };
  }
  if (isCall(type)) return readCall(item);
  if (isResult(type)) return { ...NO_TRAITS, role: 'tool', toolResultIds: [resultId(item)] };
  return NO_TRAITS;
}

/** Reads an item of reasoning. Without encrypted content the provider stores the reasoning under the item's id. */
function readReasoning(item: Fields): ItemTraits {
  const signature = asText(item['encrypted_content']) || asText(item['id']);
  const thoughts = signature === '' ? [] : [thoughtId(signature)];
  return { ...NO_TRAITS, hasReasoning: true, thoughts, isThought: true };
}

/** Types of the items in which the provider's own compaction puts a history; only the provider can read them. */
const COMPACTED: ReadonlySet<string> = new Set([
  'compaction',
  'compaction_summary',
  'context_compaction',
]);

function readMessage(item: Fields): ItemTraits {
  switch (item['role']) {
    case 'user':
      return readUser(item);
    case 'assistant':
      return { ...NO_TRAITS, role: 'assistant', assistantText: visibleText(item['content']) };
    case 'system':
    case 'developer':
      return readSystemItem(textsOf(item['content']));
    default:
      return NO_TRAITS;
  }
}

function readUser(item: Fields): ItemTraits {
  const texts = textsOf(item['content']);
  return {
    ...NO_TRAITS,
    role: 'user',
    ...readUserText(texts, false),
    ...readMarked(item, texts),
    ...projectInUser(texts),
  };
}

/** Returns the typed text if a message states its parts' kinds, as Codex does for OpenAI's endpoint; else undefined. */
function readMarked(
  item: Fields,
  texts: readonly string[],
): Pick<UserText, 'humanText'> | undefined {
  const mark = asRecord(item['internal_chat_message_metadata_passthrough']);
  const kinds = mark['content_item_kinds'];
  if (!Array.isArray(kinds)) return undefined;
  // Codex states one kind for each part, pictures included.
  const parts = Array.isArray(item['content']) ? item['content'] : texts;
  const typed = parts.filter((_, index) => kinds[index] === 'user.text');
  const own = typed.map((part) =>
    typeof part === 'string' ? part : asText(asRecord(part)['text']),
  );
  return { humanText: own.filter((text) => text.trim() !== '').join('\n') };
}

function visibleText(content: unknown): string {
  return textsOf(content).join('').trim();
}

function isCall(type: string): boolean {
  return type.endsWith('_call') || type === 'mcp_approval_request';
}

function isResult(type: string): boolean {
  return type.endsWith('_output') || type === 'mcp_approval_response';
}

/** Returns the id of a call that the client must answer. Most calls that the provider ran itself have no `call_id`. */
function clientCallId(item: Fields): string | undefined {
  if (item['type'] === 'mcp_approval_request') return asText(item['id']);
  return typeof item['call_id'] === 'string' ? item['call_id'] : undefined;
}

function resultId(item: Fields): string {
  return asText(item['call_id'] ?? item['approval_request_id']);
}

function readCall(item: Fields): ItemTraits {
  const waits = clientCallId(item);
  const id = waits ?? asText(item['id']);
  return {
    ...NO_TRAITS,
    role: 'assistant',
    toolCalls: [toolCall(id, item['name'] ?? item['type'])],
    toolResultIds: waits === undefined ? [id] : [],
  };
}

function callArguments(item: Fields): readonly CallArguments[] {
  return [[asText(item['call_id']), item['arguments'] ?? item['input'] ?? item['action']]];
}

function resultPlaces(_bytes: Buffer, item: Span): readonly ResultPlace[] {
  return [{ open: item.start, idName: 'call_id', textName: 'output' }];
}
