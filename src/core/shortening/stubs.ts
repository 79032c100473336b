import { fewDefinitions } from '../bytes/definitions.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import { EXCERPT_TOKENS_MAX, referenceOf } from '../memory/reference.ts';

/**
 * Writes the stub that replaces a left-out tool output. It depends only on the output and the name of its tool. So
 * later requests have the same bytes, and the provider's prompt cache keeps its prefix.
 */

// Characters of an output's first line in its stub: enough to recognise a file or a command. With so many, stubs of
// real sessions have some 37 tokens.
const FIRST_LINE_CHARS = 40;
// Characters of an output in which the first line that is not blank is searched for.
const START_CHARS = 1_024;
// Matches the header that Codex writes above an output. No stub quotes it, because it does not describe the output.
const HEADER =
  /^(?:(?:Chunk ID|Exit code|Wall time|Original token count): [^\n]*\n|Process [^\n]*\n)+Output:\n(?:Total output lines: [^\n]*\n)?/;
// Longest tool name in a stub. Clients and MCP servers choose the names, which mostly have at most 64 characters.
const TOOL_CHARS = 64;

/** The facts about an output that a stub states. */
export interface Gist {
  readonly characters: number;
  readonly firstLine: string;
}

export interface StubFacts {
  readonly tool: string;
  readonly digest: string;
  readonly text: string;
  readonly gist: Gist;
}

export function gistOf(text: string): Gist {
  return { characters: text.length, firstLine: firstLine(text) };
}

const START = '[svc left out this ';

export interface Stub {
  readonly tool: string;
  readonly digest: string;
  readonly text: string;
  /** The escaped text for the inside of a JSON string. */
  readonly bytes: Uint8Array;
  readonly tokens: number;
}

// Caches the stub by the gist of its output, because every later request has the same stub. Writing the stub of an
// output of 10 kB takes 100 us.
const STUBS = new WeakMap<Gist, Stub>();

export function stubOf(output: StubFacts): Stub {
  const { tool, digest, gist } = output;
  const known = STUBS.get(gist);
  if (known?.tool === tool && known.digest === digest) return known;
  const name = plain(tool).slice(0, TOOL_CHARS);
  const text = `${START}${name === '' ? 'tool' : name} output: ${describe(output)}]`;
  const bytes = Buffer.from(JSON.stringify(text).slice(1, -1));
  const stub = { tool, digest, text, bytes, tokens: estimateTextTokens(text) };
  STUBS.set(gist, stub);
  return stub;
}

/**
 * Describes an output: its size, its first line, and a command that reads it. A long one gets a command that reads a
 * part, and, if definitions are found, their names with their lines instead of the first line.
 */
function describe({ digest, text, gist }: StubFacts): string {
  const size = `${countLines(text)} lines, ${sizeText(gist.characters)}`;
  const said = `${size}, "${gist.firstLine}"`;
  const command = `svc memory get ${referenceOf(digest)}`;
  // A text of this size is returned whole by one call, so the stub proposes no part.
  if (estimateTextTokens(text) <= EXCERPT_TOKENS_MAX) return `${said}. To read it: ${command}`;
  const names = namesIn(text);
  const [first] = names;
  if (first === undefined) return `${said}. A part: ${command} --lines 1-${PART_LINES}`;
  // The names in a text say more than its first line, because the call before the stub names the file already.
  const listed = names.map(({ name, line }) => `${line} ${name}`).join(', ');
  return `${size}; line ${listed}. A part: ${command} --around ${first.name}`;
}

/** Bound on the names in a stub: each costs some 5 tokens in every later request. */
const NAMES_MAX = 5;
/** Number of lines of a left-out text that svc proposes to read at once: about as many as one call returns. */
export const PART_LINES = 100;
/** Matches the beginning of a name that needs no quotes in a shell. */
const SHELL_WORD = /^[A-Za-z0-9_.]+/;

function namesIn(text: string): readonly { readonly name: string; readonly line: number }[] {
  return fewDefinitions(text, NAMES_MAX).flatMap(({ name, line }) => {
    const [word] = SHELL_WORD.exec(name) ?? [];
    return word === undefined ? [] : [{ name: word, line }];
  });
}

function sizeText(characters: number): string {
  return characters < 1_000 ? `${characters} chars` : `${Math.round(characters / 1_000)}k chars`;
}

/**
 * Writes the note that tells the model how to read left-out texts. It follows only the first stub of a request, because
 * it is longer than a stub. `folder`, `objectsUrl`: see NoteStyle.
 */
export function writeNote(folder: string | undefined, objectsUrl?: string): string {
  const file = folder === undefined ? '' : `, or read the file ${folder}/REFERENCE.txt`;
  const call =
    objectsUrl === undefined ? '' : `. Where svc is not installed: ${callFor(objectsUrl)}`;
  return ` [svc keeps every output that it left out, word for word. ${HOW_TO_READ}${file}${call}]`;
}

/**
 * Writes the shell command with which a model reads a text from the service. The command takes the service's key from
 * the variable that `svc print-config --service` names.
 */
function callFor(objectsUrl: string): string {
  const header = 'authorization: Bearer $SVC_SERVICE_KEY';
  return `curl -sH "${header}" "${objectsUrl}REFERENCE?format=text&lines=1-200"`;
}

const HOW_TO_READ =
  'Of a long one read only the part that you need: svc memory get REFERENCE with --grep PATTERN, ' +
  '--around NAME or --lines 1-100. Without a shell: tool memory_get with the same';

/** Says whether a text begins as a stub of svc. svc never stores such a text as a tool's output. */
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

/** Replaces characters that could end the stub early or hide text: quotes, brackets, controls, half surrogate pairs. */
function plain(text: string): string {
  return text
    .normalize()
    .replaceAll(/[^\p{L}\p{N}\p{P}\p{S} ]+/gu, ' ')
    .replaceAll(/["[\]<>\\]/g, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim();
}

// --- the lines of a text: the `\n` at the end of a line belongs to that line

/** Counts the lines of a text; a last line without a line end counts too. */
export function countLines(text: string): number {
  let lines = 0;
  for (let at = 0; at < text.length; at = lineStart(text, at, 1)) lines += 1;
  return lines;
}

/** Returns where the line begins that is `lines` below the one at `start`; the end of the text if there is none. */
export function lineStart(text: string, start: number, lines: number): number {
  let at = start;
  for (let passed = 0; passed < lines && at < text.length; passed += 1) {
    const end = text.indexOf('\n', at);
    if (end === -1) return text.length;
    at = end + 1;
  }
  return at;
}
