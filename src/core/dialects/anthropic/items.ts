import { THINKING_TYPES } from '../../conversation/fingerprint.ts';
import { thoughtId } from '../../conversation/thoughts.ts';
import { typedInOutput } from '../../conversation/end-reminders.ts';
import { readUserText } from '../../conversation/human-text.ts';
import { projectInUser } from '../../conversation/stated-project.ts';
import type { ItemTraits } from '../../conversation/view.ts';
import { asList, asRecord, asText, type Fields, joinParagraphs } from '../../bytes/json-fields.ts';
import {
  elementsOf,
  memberValue,
  opensList,
  opensObject,
  parseJson,
} from '../../bytes/json-scan.ts';
import type { Span } from '../../bytes/span.ts';
import { type CallArguments, type ItemForm, PLAIN_FORM, type ResultPlace } from '../descriptor.ts';
import { readSystemItem, textsOf } from '../system-text.ts';
import { NO_TRAITS, toolCall } from '../traits.ts';

/** Messages: `role` and a string, or a list of typed blocks. Newer clients also send role system. */
export function readMessagesItem(value: unknown, form: ItemForm = PLAIN_FORM): ItemTraits {
  const message = asRecord(value);
  const content = message['content'];
  switch (message['role']) {
    case 'user':
      return readUser(content, form);
    case 'assistant':
      return readAssistant(content);
    case 'system':
      return readSystemItem(textsOf(content));
    default:
      return NO_TRAITS;
  }
}

function readUser(content: unknown, { hasFrames }: ItemForm): ItemTraits {
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
    const typed = hasFrames && type === 'tool_result' ? typedInResult(block) : '';
    if (typed !== '') framed.push(typed);
  }
  const said = readUserText(texts, toolResultIds.length > 0);
  return {
    ...NO_TRAITS,
    role: 'user',
    ...said,
    ...(framed.length > 0 && {
      humanText: [...framed, said.humanText].filter((text) => text !== '').join('\n'),
      isUnverified: true,
    }),
    toolResultIds,
    ...projectInUser(texts),
  };
}

/** Claude Code glues what the person types meanwhile to the end of a tool's output; no other client does. */
function typedInResult({ content }: Fields): string {
  return typedInOutput(textsOf(content).at(-1) ?? '');
}

function readAssistant(content: unknown): ItemTraits {
  const blocks = asList(content);
  const calls = blocks.map(asRecord).filter((block) => asText(block['type']).endsWith('tool_use'));
  return {
    ...NO_TRAITS,
    role: 'assistant',
    assistantText: typeof content === 'string' ? content.trim() : visibleText(blocks),
    toolCalls: calls.map((block) => toolCall(block['id'], block['name'])),
    toolResultIds: resultIds(blocks),
    hasReasoning: blocks.some((block) => REASONING.has(asRecord(block)['type'])),
    thoughts: thoughtsIn(blocks),
    ...(blocks.length > 0 && blocks.every(isThinking) && { isThought: true }),
  };
}

function isThinking(value: unknown): boolean {
  return THINKING_TYPES.has(asText(asRecord(value)['type']));
}

/** Thinking without a signature is bound to nothing: other providers send it behind this dialect. */
export function thoughtsIn(blocks: readonly unknown[]): readonly string[] {
  const signed = blocks.filter(isThinking).map((value) => {
    const block = asRecord(value);
    return asText(block['type'] === 'redacted_thinking' ? block['data'] : block['signature']);
  });
  return signed.filter((signature) => signature !== '').map(thoughtId);
}

/** Blocks that only the provider can read, and that it wants back as they were. */
const REASONING: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking', 'compaction']);

/** `tool_result`, and what the provider's own tools answer: `web_search_tool_result`, … */
function isResult(type: string): boolean {
  return type.endsWith('tool_result');
}

function resultIds(blocks: readonly unknown[]): readonly string[] {
  return blocks
    .map(asRecord)
    .filter((block) => isResult(asText(block['type'])))
    .map((block) => asText(block['tool_use_id']));
}

/**
 * Text blocks side by side are pieces of one sentence, which citations cut. Another block between
 * them separates paragraphs.
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

export function callArguments(message: Fields): readonly CallArguments[] {
  return asList(message['content'])
    .map(asRecord)
    .map((block) => [asText(block['id']), block['input']]);
}

export function resultPlaces(bytes: Buffer, item: Span): readonly ResultPlace[] {
  const content = memberValue(bytes, item.start, 'content');
  if (content === undefined || !opensList(bytes, content.start)) return [];
  const results = elementsOf(bytes, content).filter((open) => {
    const type = opensObject(bytes, open) ? memberValue(bytes, open, 'type') : undefined;
    return type !== undefined && parseJson(bytes, type)?.value === 'tool_result';
  });
  return results.map((open) => ({ open, idName: 'tool_use_id', textName: 'content' }));
}
