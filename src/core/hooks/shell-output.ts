import { asRecord, asText } from '../bytes/json-fields.ts';
import { filesPrinted } from '../memory/concerned-files.ts';
import type { HookClient } from './hook-clients.ts';
import type { ToolRun } from './hook-event.ts';

/**
 * Finds the output of a shell in a hook's event, and puts a shorter one in its place. Codex 0.169.0 has no field for that:
 * it refuses an answer with `updatedMCPToolOutput` as unsupported, and knows no other (2026-11-24).
 */

export interface ShellOutput {
  readonly text: string;
  /** The tool's answer, in its own shape, with this text. */
  readonly with: (text: string) => unknown;
}

/** Undefined for other tools, for the reading of a file, and where the client has cut the output itself. */
export function shellOutputOf(
  { form }: Pick<HookClient, 'form'>,
  { name, input, output }: ToolRun,
): ShellOutput | undefined {
  if (name.toLowerCase() !== 'bash' || filesPrinted(asText(input['command'])).length > 0)
    return undefined;
  const fields = asRecord(output);
  switch (form) {
    case 'claude': {
      // Claude Code 2.1.329 writes an output of more than 30,000 characters to a file, and shows where.
      const isClients = fields['isImage'] === true || fields['persistedOutputPath'] !== undefined;
      const text = asText(fields['stdout']);
      return isClients ? undefined : { text, with: (stdout) => ({ ...fields, stdout }) };
    }
    case 'copilot': {
      // Copilot CLI 1.0.102 does the same from 20 kB on, and its text says so.
      const text = asText(fields['textResultForLlm']);
      return { text, with: (shorter) => ({ ...fields, textResultForLlm: shorter }) };
    }
    case 'plugin':
      return { text: asText(output), with: (text) => text };
    case 'codex':
      return undefined;
  }
}
