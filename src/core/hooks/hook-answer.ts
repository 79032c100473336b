import { asRecord, parseJson } from '../bytes/json-fields.ts';
import type { HookClient } from './hook-clients.ts';
import type { HookEvent } from './hook-event.ts';

/** Writes the answer to a hook: one JSON object in the client's own form, or nothing. */

/**
 * Bound on a hook's text as JSON, in bytes. In published measurements of such hooks a bound of 1,024 cut off
 * conclusions, and one of 2,048 helped no more than this one.
 */
export const HOOK_TEXT_BYTES_MAX = 1_400;

/** Introduces the text for Codex, because a model took a hook's text for its task (openai/codex#40680). */
const NO_TASK = 'Background, not a task:\n';

/**
 * Writes the answer; '' for an empty `text`, or if Copilot's prompt is unknown. `text`: what is added to the prompt or
 * the result.
 */
export function hookAnswer(
  { form }: HookClient,
  { name, kind, sentPrompt }: Pick<HookEvent, 'name' | 'kind' | 'sentPrompt'>,
  text: string,
): string {
  if (text === '') return '';
  switch (form) {
    case 'claude':
    case 'codex': {
      const said = form === 'codex' ? NO_TASK + text : text;
      return JSON.stringify({
        hookSpecificOutput: { hookEventName: name, additionalContext: said },
      });
    }
    case 'copilot': {
      if (kind === 'prompt') {
        // Copilot replaces its prompt by the answer, so svc must know the prompt.
        if (sentPrompt === '') return '';
        return JSON.stringify({ modifiedTransformedPrompt: `${sentPrompt}\n\n${text}` });
      }
      return JSON.stringify({ additionalContext: text });
    }
    case 'plugin':
      return JSON.stringify({ text });
  }
}

/** Adds the text that replaces a tool's output to the answer of its hook. `answer`: what hookAnswer() returned. */
export function withOutput(
  { form }: Pick<HookClient, 'form'>,
  { name }: Pick<HookEvent, 'name'>,
  { answer, output }: { readonly answer: string; readonly output: unknown },
): string {
  const said = asRecord(parseJson(answer));
  switch (form) {
    case 'claude': {
      const specific = { hookEventName: name, ...asRecord(said['hookSpecificOutput']) };
      const hookSpecificOutput = { ...specific, updatedToolOutput: output };
      return JSON.stringify({ ...said, hookSpecificOutput });
    }
    case 'copilot':
      return JSON.stringify({ ...said, modifiedResult: output });
    case 'plugin':
      return JSON.stringify({ text: '', ...said, output });
    case 'codex':
      return answer;
  }
}

export function fitsHook(text: string): boolean {
  return Buffer.byteLength(JSON.stringify(text)) <= HOOK_TEXT_BYTES_MAX;
}
