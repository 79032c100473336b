import { referenceOf } from '../memory/reference.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';

/**
 * Writes what stands in the place of an elided tool output. A pure function of the output: no time,
 * no counter, nothing of the request around it, so that the same output is the same bytes for ever
 * and the provider's prompt cache keeps its prefix.
 */

// Enough to recognise a file or a command's first words; with it a stub of a real session is 37 tokens.
const FIRST_LINE_CHARS = 40;
// Blank lines above the first one are few.
const START_CHARS = 1_024;
// What Codex writes above an output says nothing of it.
const HEADER =
  /^(?:(?:Chunk ID|Exit code|Wall time|Original token count): [^\n]*\n|Process [^\n]*\n)+Output:\n(?:Total output lines: [^\n]*\n)?/;
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

const START = '[svc left out this ';

export function writeStub(output: StubFacts): string {
  return stubOf(output).text;
}

interface Stub {
  readonly tool: string;
  readonly digest: string;
  readonly text: string;
  readonly tokens: number;
}

// What is left out is left out of every later request, and what it says was read once.
const stubs = new WeakMap<Gist, Stub>();

function stubOf({ tool, digest, gist }: StubFacts): Stub {
  const known = stubs.get(gist);
  if (known?.tool === tool && known.digest === digest) return known;
  const name = plain(tool).slice(0, TOOL_CHARS);
  const text =
    `${START}${name === '' ? 'tool' : name} output: ${gist.lines} lines, "${gist.firstLine}". ` +
    `To read it: svc memory get ${referenceOf(digest)}]`;
  const stub = { tool, digest, text, tokens: estimateTextTokens(text) };
  stubs.set(gist, stub);
  return stub;
}

/**
 * What a model should know of stubs. It stands behind the first of a request and nowhere else, as it
 * is half as long again as a stub. `folder`: where the same texts are files; undefined where none are.
 */
export function writeNote(folder: string | undefined): string {
  const file = folder === undefined ? '' : `, or read the file ${folder}/REFERENCE.txt`;
  return (
    ' [svc keeps every output that it left out, word for word. A part of a long one: ' +
    `svc memory get REFERENCE --lines 1-200. Without a shell: tool memory_get${file}]`
  );
}

/** Estimated tokens of the stub. */
export function stubTokens(output: StubFacts): number {
  return stubOf(output).tokens;
}

/** A stub of ours, whole or at the start of a text: it is never captured as what a tool said. */
export function isStub(text: string): boolean {
  return text.startsWith(START);
}

function firstLine(text: string): string {
  const said = text.slice(0, START_CHARS).replace(HEADER, '');
  const line = /[^\s][^\n]*/.exec(said)?.[0] ?? '';
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
