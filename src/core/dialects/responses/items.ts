import { readUserText, type UserText } from '../../conversation/human-text.ts';
import { thoughtId } from '../../conversation/thoughts.ts';
import { projectInUser } from '../../conversation/stated-project.ts';
import type { ItemTraits } from '../../conversation/view.ts';
import { asRecord, asText, type Fields } from '../../bytes/json-fields.ts';
import type { Span } from '../../bytes/span.ts';
import type { CallArguments, ResultPlace } from '../descriptor.ts';
import { readSystemItem, textsOf } from '../system-text.ts';
import { NO_TRAITS, toolCall } from '../traits.ts';

/** Responses: typed items, messages among them. `input` may also be one string: the person's. */
export function readResponsesItem(value: unknown): ItemTraits {
  if (typeof value === 'string') return readUser({ content: value });
  const item = asRecord(value);
  const type = item['type'] ?? 'message';
  if (type === 'message') return readMessage(item);
  if (typeof type !== 'string') return NO_TRAITS;
  if (type === 'item_reference') return { ...NO_TRAITS, isReference: true };
  if (type === 'compaction_trigger') return { ...NO_TRAITS, clientOrder: 'compaction' };
  if (type === 'reasoning') return readReasoning(item);
  if (COMPACTED.has(type)) return { ...NO_TRAITS, hasReasoning: true, isSummary: true };
  if (isCall(type)) return readCall(item);
  if (isResult(type)) return { ...NO_TRAITS, role: 'tool', toolResultIds: [resultId(item)] };
  return NO_TRAITS;
}

/** Without encrypted content the provider itself keeps the reasoning, under its id. */
function readReasoning(item: Fields): ItemTraits {
  const signature = asText(item['encrypted_content']) || asText(item['id']);
  const thoughts = signature === '' ? [] : [thoughtId(signature)];
  return { ...NO_TRAITS, hasReasoning: true, thoughts, isThought: true };
}

/** Items that the provider's own compaction made of a history: only the provider can read them. */
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

/** Codex marks each part with its kind when it believes that it talks to OpenAI itself. */
function readMarked(
  item: Fields,
  texts: readonly string[],
): Pick<UserText, 'humanText'> | undefined {
  const mark = asRecord(item['internal_chat_message_metadata_passthrough']);
  const kinds = mark['content_item_kinds'];
  if (!Array.isArray(kinds)) return undefined;
  // Kinds count all parts, pictures too.
  const parts = Array.isArray(item['content']) ? item['content'] : texts;
  const typed = parts.filter((_, index) => kinds[index] === 'user.text');
  const own = typed.map((part) =>
    typeof part === 'string' ? part : asText(asRecord(part)['text']),
  );
  return { humanText: own.filter((text) => text.trim() !== '').join('\n') };
}

export function visibleText(content: unknown): string {
  return textsOf(content).join('').trim();
}

export function isCall(type: string): boolean {
  return type.endsWith('_call') || type === 'mcp_approval_request';
}

export function isResult(type: string): boolean {
  return type.endsWith('_output') || type === 'mcp_approval_response';
}

/**
 * Calls that the client must answer carry a `call_id`; calls that the provider ran by itself do
 * not.
 */
export function clientCallId(item: Fields): string | undefined {
  if (item['type'] === 'mcp_approval_request') return asText(item['id']);
  return typeof item['call_id'] === 'string' ? item['call_id'] : undefined;
}

export function resultId(item: Fields): string {
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

export function callArguments(item: Fields): readonly CallArguments[] {
  return [[asText(item['call_id']), item['arguments'] ?? item['input'] ?? item['action']]];
}

export function resultPlaces(_bytes: Buffer, item: Span): readonly ResultPlace[] {
  return [{ open: item.start, idName: 'call_id', textName: 'output' }];
}
