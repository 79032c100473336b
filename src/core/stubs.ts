import { referenceOf } from './reference.ts';
import { estimateTextTokens } from './tokens.ts';
import type { ToolOutput } from './outputs.ts';

/**
 * Writes what stands in the place of an elided tool output. A pure function of the output: no time,
 * no counter, nothing of the request around it, so that the same output is the same bytes for ever
 * and the provider's prompt cache keeps its prefix.
 */

// Enough to recognise a file or a command's first words; with it a stub is about 45 tokens.
const FIRST_LINE_CHARS = 60;
// Names of tools are chosen by clients and servers of theirs: as long as a name, and no longer.
const TOOL_CHARS = 64;

export function writeStub({
  tool,
  text,
  digest,
}: Pick<ToolOutput, 'tool' | 'text' | 'digest'>): string {
  const name = plain(tool).slice(0, TOOL_CHARS);
  const lines = text.split('\n').length;
  const ref = referenceOf(digest);
  return (
    `[svc left this ${name === '' ? 'tool' : name} output out to save tokens: ${lines} lines, ` +
    `${text.length} characters, starting "${firstLine(text)}". If you need it, read it with: ` +
    `svc memory get ${ref} (or part of it: --lines 1-200)]`
  );
}

/** Estimated tokens of the stub. */
export function stubTokens(output: Pick<ToolOutput, 'tool' | 'text' | 'digest'>): number {
  return estimateTextTokens(writeStub(output));
}

/** A stub of ours, whole or at the start of a text: it is never captured as what a tool said. */
export function isStub(text: string): boolean {
  return text.startsWith('[svc left this ');
}

function firstLine(text: string): string {
  const line = text.split('\n').find((it) => it.trim() !== '') ?? '';
  return plain(line.slice(0, 4 * FIRST_LINE_CHARS))
    .slice(0, FIRST_LINE_CHARS)
    .trim();
}

/** Without what could end the stub early or hide text: quotes, brackets, controls, half pairs. */
function plain(text: string): string {
  return text
    .normalize()
    .replaceAll(/[^\p{L}\p{N}\p{P}\p{S} ]+/gu, ' ')
    .replaceAll(/["[\]<>\\]/g, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim();
}
