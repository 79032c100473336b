import { field, listField, textField } from '../scripted-provider/loose-json.ts';
import { type Refusal, shape } from './judgement.ts';

/**
 * Chat Completions: no reasoning comes back, so nothing is bound (an inference: "cannot carry reasoning
 * items", 2026-11). What is refused is a call without its result; the words are those of the public API.
 */
export function refusedChat(json: unknown): Refusal | undefined {
  const messages = listField(json, 'messages');
  let open: string[] = [];
  for (const [at, message] of messages.entries()) {
    if (field(message, 'role') === 'tool') {
      const id = textField(message, 'tool_call_id');
      if (!open.includes(id)) {
        return shape(
          `messages.[${at}].role`,
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        );
      }
      open = open.filter((one) => one !== id);
      continue;
    }
    if (open.length > 0) return unanswered(open);
    open = listField(message, 'tool_calls').map((call) => textField(call, 'id'));
  }
  return open.length > 0 ? unanswered(open) : undefined;
}

function unanswered(ids: readonly string[]): Refusal {
  return shape(
    '',
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
  );
}
