import { fewDefinitions } from '../bytes/definitions.ts';
import { countLines } from '../bytes/lines.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import { EXCERPT_TOKENS_MAX, referenceOf } from '../memory/reference.ts';

/**
 * Writes the stub that replaces a left-out tool output. A pure function of the output: no time, no
 * counter, nothing of the request around it. So the same output always gives the same bytes, and
 * the provider's prompt cache keeps its prefix.
 */

// Enough to recognise a file or a command's first words; with it a stub of a real session is 37 tokens.
const FIRST_LINE_CHARS = 40;
// Blank lines above the first one are few.
const START_CHARS = 1_024;
// The header that Codex writes above an output, which says nothing about the output.
const HEADER =
  /^(?:(?:Chunk ID|Exit code|Wall time|Original token count): [^\n]*\n|Process [^\n]*\n)+Output:\n(?:Total output lines: [^\n]*\n)?/;
// Limit of a tool's name in a stub: clients and their MCP servers choose the names, which end at 64 characters.
const TOOL_CHARS = 64;

/** The facts about a text that its stub states. */
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
  /** The text in escaped form, as inside the quotes of a JSON string. */
  readonly bytes: Uint8Array;
  readonly tokens: number;
}

// Every later request writes the same stubs, so each is written once.
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

/** The size, names with their lines where the text is long, and a command that reads a part. */
function describe({ digest, text, gist }: StubFacts): string {
  const size = `${countLines(text)} lines, ${sizeText(gist.characters)}`;
  const said = `${size}, "${gist.firstLine}"`;
  const command = `svc memory get ${referenceOf(digest)}`;
  // It comes back at once.
  if (estimateTextTokens(text) <= EXCERPT_TOKENS_MAX) return `${said}. To read it: ${command}`;
  const names = namesIn(text);
  const [first] = names;
  if (first === undefined) return `${said}. A part: ${command} --lines 1-${PART_LINES}`;
  // The call above names the file: names say more of what is in it than its first line.
  const listed = names.map(({ name, line }) => `${line} ${name}`).join(', ');
  return `${size}; line ${listed}. A part: ${command} --around ${first.name}`;
}

/** Each is some 5 tokens, in every later request. */
const NAMES_MAX = 5;
/** About as much as comes back at once. */
const PART_LINES = 100;
/**
 * The characters that a shell takes as one unquoted word; a heading of several words is found by
 * its first.
 */
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
 * The note that explains stubs to the model. It follows the first stub of a request only, as it is
 * longer than a stub. `folder`: the folder with the left-out texts as files; undefined where there
 * is none. `objectsUrl`: where a service answers for a reference.
 */
export function writeNote(folder: string | undefined, objectsUrl?: string): string {
  const file = folder === undefined ? '' : `, or read the file ${folder}/REFERENCE.txt`;
  const call =
    objectsUrl === undefined ? '' : `. Where svc is not installed: ${callFor(objectsUrl)}`;
  return ` [svc keeps every output that it left out, word for word. ${HOW_TO_READ}${file}${call}]`;
}

/** The variable that `svc print-config --service` sets beside the client's own. */
function callFor(objectsUrl: string): string {
  const header = 'authorization: Bearer $SVC_SERVICE_KEY';
  return `curl -sH "${header}" "${objectsUrl}REFERENCE?format=text&lines=1-200"`;
}

const HOW_TO_READ =
  'Of a long one read only the part that you need: svc memory get REFERENCE with --grep PATTERN, ' +
  '--around NAME or --lines 1-100. Without a shell: tool memory_get with the same';

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
