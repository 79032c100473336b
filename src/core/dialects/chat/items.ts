import { REASONING_MEMBERS } from '../../conversation/fingerprint.ts';
import { thoughtId } from '../../conversation/thoughts.ts';
import { readUserText } from '../../conversation/human-text.ts';
import { projectInUser } from '../../conversation/stated-project.ts';
import type { ItemTraits, ToolCall } from '../../conversation/view.ts';
import { asList, asRecord, asText, isRecord, type Fields } from '../../bytes/json-fields.ts';
import type { Span } from '../../bytes/span.ts';
import type { CallArguments, ResultPlace } from '../descriptor.ts';
import { readSystemItem, textsOf } from '../system-text.ts';
import { NO_TRAITS, toolCall } from '../traits.ts';

/** Chat Completions: one message an item; calls are fields of the assistant's message. */
export function readChatItem(value: unknown): ItemTraits {
  const message = asRecord(value);
  switch (message['role']) {
    case 'user':
      return readUser(message);
    case 'assistant':
      return readAssistant(message);
    case 'system':
    case 'developer':
      return readSystemItem(textsOf(message['content']));
    case 'tool':
      return { ...NO_TRAITS, role: 'tool', toolResultIds: [asText(message['tool_call_id'])] };
    case 'function': // The form before tool calls: a result names the function, not the call.
      return { ...NO_TRAITS, role: 'tool', toolResultIds: [asText(message['name'])] };
    default:
      return NO_TRAITS;
  }
}

function readUser(message: Fields): ItemTraits {
  const texts = textsOf(message['content']);
  return { ...NO_TRAITS, role: 'user', ...readUserText(texts, false), ...projectInUser(texts) };
}

function readAssistant(message: Fields): ItemTraits {
  return {
    ...NO_TRAITS,
    role: 'assistant',
    assistantText: textsOf(message['content']).join('').trim(),
    toolCalls: toolCalls(message),
    hasReasoning: REASONING_MEMBERS.some((field) => isFilled(message[field])),
    thoughts: SIGNED_MEMBERS.flatMap((field) => asList(message[field]).flatMap(thoughtsOf)),
  };
}

/** Gateways that speak this dialect pass signed thinking on: OpenRouter's form, and LiteLLM's. */
const SIGNED_MEMBERS = ['reasoning_details', 'thinking_blocks'] as const;

function thoughtsOf(value: unknown): readonly string[] {
  const part = asRecord(value);
  const signature = asText(part['signature']) || asText(part['data']);
  return signature === '' ? [] : [thoughtId(signature)];
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' ? value !== '' : asList(value).length > 0;
}

function toolCalls(message: Fields): readonly ToolCall[] {
  const calls = asList(message['tool_calls']).map((value) => {
    const call = asRecord(value);
    const named = asRecord(call['function'] ?? call['custom']);
    return toolCall(call['id'], named['name']);
  });
  const legacy = message['function_call'];
  return isRecord(legacy) ? [...calls, toolCall(legacy['name'], legacy['name'])] : calls;
}

export function callArguments(message: Fields): readonly CallArguments[] {
  return asList(message['tool_calls'])
    .map(asRecord)
    .map((call) => {
      const named = asRecord(call['function'] ?? call['custom']);
      return [asText(call['id']), named['arguments'] ?? named['input']];
    });
}

export function resultPlaces(_bytes: Buffer, item: Span): readonly ResultPlace[] {
  return [{ open: item.start, idName: 'tool_call_id', textName: 'content' }];
}
