import { asRecord, asText } from '../bytes/json-fields.ts';
import { filesPrinted } from '../memory/concerned-files.ts';
import type { HookClient } from './hook-clients.ts';
import type { ToolRun } from './hook-event.ts';
import { countLines, PART_LINES } from '../shortening/stubs.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import { isErrorLine } from '../recall/second-look.ts';

/**
 * Finds a shell's output in a hook's event, and replaces it by a shorter one. Codex 0.169.0 has no field with which a
 * hook can do that (2026-11-24).
 */

export interface ShellOutput {
  readonly text: string;
  /** Returns the tool's result in the client's form, with `text` as its output. */
  readonly with: (text: string) => unknown;
}

/**
 * Returns the output of a shell. Undefined for other tools, for a command that prints a file, for an output that Claude
 * Code has cut itself, and for Codex.
 */
export function shellOutputOf(
  { form }: Pick<HookClient, 'form'>,
  { name, input, output }: ToolRun,
): ShellOutput | undefined {
  if (name.toLowerCase() !== 'bash' || filesPrinted(asText(input['command'])).length > 0)
    return undefined;
  const fields = asRecord(output);
  switch (form) {
    case 'claude': {
      // Claude Code 2.1.329 writes an output of more than 30,000 characters to a file, and names the file.
      const isClients = fields['isImage'] === true || fields['persistedOutputPath'] !== undefined;
      const text = asText(fields['stdout']);
      return isClients ? undefined : { text, with: (stdout) => ({ ...fields, stdout }) };
    }
    case 'copilot': {
      // Copilot CLI 1.0.102 also writes an output of more than 20 kB to a file. Then this text says so, and is short.
      const text = asText(fields['textResultForLlm']);
      return { text, with: (shorter) => ({ ...fields, textResultForLlm: shorter }) };
    }
    case 'plugin':
      return { text: asText(output), with: (text) => text };
    case 'codex':
      return undefined;
  }
}

/** Tokens above which an output is cut. Cutting a shorter one saves less than reading the output again costs. */
export const CUT_TOKENS_MIN = 4_000;
/**
 * Most tokens that stay at the beginning and at the end. The end has more, because it states the result of a build or
 * test.
 */
const HEAD_TOKENS = 300;
const TAIL_TOKENS = 700;
/** Bound on the error lines that stay: a thousand lines may report one reason. */
const ERRORS_MAX = 20;
const ERROR_CHARS = 200;

/**
 * Cuts the middle out of a long output before it is first sent. The first and last lines stay, and between them up to
 * ERRORS_MAX lines that report an error, with their line numbers. `command`: the command that prints the whole text.
 * Returns undefined for a short output, and if the first line has more than HEAD_TOKENS or the last one more than
 * TAIL_TOKENS, because only whole lines can be read again.
 */
export function cutOutput(text: string, command: string): string | undefined {
  if (estimateTextTokens(text) <= CUT_TOKENS_MIN) return undefined;
  const lines = text.split('\n');
  const head = countFitting(lines, HEAD_TOKENS);
  const tail = countFitting(lines.toReversed(), TAIL_TOKENS);
  if (head === 0 || tail === 0 || head + tail >= lines.length) return undefined;
  const end = lines.length - tail;
  const middle = lines.slice(head, end);
  const errors = middle
    .flatMap((line, at) => (isErrorLine(line) ? [`${head + at + 1}: ${line.trim()}`] : []))
    .slice(0, ERRORS_MAX)
    .map((line) => line.slice(0, ERROR_CHARS));
  const tokens = estimateTextTokens(middle.join('\n'));
  const said = `svc left out lines ${head + 1} to ${end} of ${countLines(text)}, about ${tokens} tokens. To read them: ${command} --lines ${head + 1}-${Math.min(end, head + PART_LINES)}, or with --grep PATTERN`;
  const found = errors.length === 0 ? [] : ['Lines in it that report an error:', ...errors];
  return [
    ...lines.slice(0, head),
    `[${said}.]`,
    ...found,
    '[The end of the output:]',
    ...lines.slice(end),
  ].join('\n');
}

function countFitting(lines: readonly string[], tokensMax: number): number {
  let tokens = 0;
  const over = lines.findIndex((line) => {
    tokens += estimateTextTokens(`${line}\n`);
    return tokens > tokensMax;
  });
  return over === -1 ? lines.length : over;
}
