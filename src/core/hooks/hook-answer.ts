import type { HookClient } from './hook-clients.ts';
import type { HookEvent } from './hook-event.ts';

/** Writes the answer to a hook: one JSON object in the client's own form, or nothing at all. */

/** What a hook answers: text beside the prompt or the result, and a shorter output in place of the tool's own. */
export interface HookSays {
  readonly text: string;
  /** In the tool's own shape. */
  readonly output?: unknown;
}

/**
 * Bytes of the text as JSON. Measured by others on hooks of this kind: with 1,024 bytes conclusions were cut, and
 * 2,048 brought nothing more.
 */
export const HOOK_TEXT_BYTES_MAX = 1_400;

/** Codex puts the text behind the prompt, where a model took one for its task (openai/codex issue 40680). */
const NO_TASK = 'Background, not a task:\n';

/** '' says nothing. */
export function hookAnswer(
  { form }: HookClient,
  { name, kind, sentPrompt }: Pick<HookEvent, 'name' | 'kind' | 'sentPrompt'>,
  { text, output }: HookSays,
): string {
  if (text === '' && output === undefined) return '';
  switch (form) {
    case 'claude':
    case 'codex': {
      const said = form === 'codex' ? NO_TASK + text : text;
      return JSON.stringify({
        hookSpecificOutput: {
          hookEventName: name,
          ...(text !== '' && { additionalContext: said }),
          ...(output !== undefined && { updatedToolOutput: output }),
        },
      });
    }
    case 'copilot': {
      if (kind === 'prompt') {
        // Without the prompt itself there is nothing to put the text behind.
        if (sentPrompt === '') return '';
        return JSON.stringify({ modifiedTransformedPrompt: `${sentPrompt}\n\n${text}` });
      }
      return JSON.stringify({
        ...(text !== '' && { additionalContext: text }),
        ...(output !== undefined && { modifiedResult: output }),
      });
    }
    case 'plugin':
      return JSON.stringify({ text, ...(output !== undefined && { output }) });
  }
}

export function fitsHook(text: string): boolean {
  return Buffer.byteLength(JSON.stringify(text)) <= HOOK_TEXT_BYTES_MAX;
}
