import { referenceOf } from './reference.ts';
import { estimateTextTokens } from './tokens.ts';

/**
 * Writes what stands in the place of an elided tool output. A pure function of the output: no time,
 * no counter, nothing of the request around it, so that the same output is the same bytes for ever
 * and the provider's prompt cache keeps its prefix.
 */

// Enough to recognise a file or a command's first words; with it a stub is about 45 tokens.
const FIRST_LINE_CHARS = 60;
// Blank lines above the first one are few.
const START_CHARS = 1_024;
// Names of tools are chosen by clients and servers of theirs: as long as a name, and no longer.
const TOOL_CHARS = 64;

/** What a stub says of the text that it stands for. */
export interface Gist {
  readonly lines: number;
  readonly characters: number;
  readonly firstLine: string;
}

export interface StubFacts {
  readonly tool: string;
  readonly digest: string;
  readonly gist: Gist;
}

export function gistOf(text: string): Gist {
  let lines = 1;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1;
  return { lines, characters: text.length, firstLine: firstLine(text) };
}

export function writeStub({ tool, digest, gist }: StubFacts): string {
  const name = plain(tool).slice(0, TOOL_CHARS);
  return (
    `[svc left this ${name === '' ? 'tool' : name} output out to save tokens: ${gist.lines} lines, ` +
    `${gist.characters} characters, starting "${gist.firstLine}". If you need it, read it with: ` +
    `svc memory get ${referenceOf(digest)} (or part of it: --lines 1-200)]`
  );
}

/** Estimated tokens of the stub. */
export function stubTokens(output: StubFacts): number {
  return estimateTextTokens(writeStub(output));
}

/** A stub of ours, whole or at the start of a text: it is never captured as what a tool said. */
export function isStub(text: string): boolean {
  return text.startsWith('[svc left this ');
}

function firstLine(text: string): string {
  const line = /[^\s][^\n]*/.exec(text.slice(0, START_CHARS))?.[0] ?? '';
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
