import type { Fields } from '../bytes/json-fields.ts';
import type { Exchange } from '../conversation/exchanges.ts';
import type { Item, RequestView } from '../conversation/view.ts';
import { type Call, callsOf, commandIn, pathIn } from '../dialects/dialects.ts';

/**
 * Finds the files that an exchange is about, by their names in its tool calls. By these names svc reads the files on
 * this machine, and finds memories about the same files. The names are not stored as memories.
 */

/** Bound on the bytes of the items whose calls are parsed, newest first. Parsing that many takes some 10 ms. */
const BYTES_MAX = 1024 * 1024;
/** Bound on the calls that are read, newest first. */
const CALLS_MAX = 256;
/** Bound on edited files, and on read files, of a single call. */
const CALL_NAMES_MAX = 64;
/** Bound on the files that concernedFiles() returns. */
const NAMES_MAX = 256;
/** Number of characters of a patch that are read. A longer patch probably changes the whole project. */
const PATCH_CHARS_MAX = 256 * 1024;

const PATCH = '*** Begin Patch';
const PATCHED = /^\*\*\* (?:Add File|Update File|Move to): (.+)$/gm;
const EDITS = /edit|write|replace|patch|create|insert|update/i;

/**
 * Returns the files that the exchange is about: first those that it edited, then those that it read and its texts
 * (`said`) name. If no file is in either group, returns all files that it read. Both groups are newest first, and each
 * file is returned once. A relative name is relative to the client's folder.
 */
export function concernedFiles(
  view: RequestView,
  exchange: Pick<Exchange, 'start' | 'end'>,
  said: string,
): readonly string[] {
  const edited: string[] = [];
  const read: string[] = [];
  for (const names of namesFromEnd(view, exchange)) {
    edited.push(...names.edited);
    read.push(...names.read);
  }
  const named = read.filter((name) => baseOf(name) !== '' && said.includes(baseOf(name)));
  const concerned = edited.length + named.length > 0 ? [...edited, ...named] : read;
  return [...new Set(concerned)].slice(0, NAMES_MAX);
}

/** Bounds for filesOfSession(), for which a prompt waits: 64 calls show what a session works on. */
const SESSION_LIMITS = { calls: 64, bytes: 128 * 1024 };
const SESSION_FILES_MAX = 24;

/** Returns the names of the files that a session edited or read last, without folders, newest first. */
export function filesOfSession(view: RequestView): readonly string[] {
  const all = { start: 0, end: view.items.length };
  const names = namesFromEnd(view, all, SESSION_LIMITS).flatMap(({ edited, read }) =>
    [...edited, ...read].map(baseOf),
  );
  return [...new Set(names)].filter((name) => name !== '').slice(0, SESSION_FILES_MAX);
}

/** Caches the names in the calls of each item, newest call first. Parsing 64 calls takes 1 to 2 ms. */
const NAMES = new WeakMap<Item, readonly Names[]>();

function namesFromEnd(
  view: RequestView,
  { start, end }: Pick<Exchange, 'start' | 'end'>,
  most = { calls: CALLS_MAX, bytes: BYTES_MAX },
): readonly Names[] {
  const found: Names[] = [];
  let bytes = 0;
  for (let at = end - 1; at >= start && found.length < most.calls; at -= 1) {
    const item = view.items[at];
    if (item === undefined || item.toolCalls.length === 0) continue;
    if (bytes + sizeOf(item) > most.bytes) continue;
    bytes += sizeOf(item);
    const names = NAMES.get(item) ?? callsOf(view, item).toReversed().map(namesIn);
    NAMES.set(item, names);
    found.push(...names);
  }
  return found.slice(0, most.calls);
}

function sizeOf({ start, end }: Item): number {
  return end - start;
}

interface Names {
  readonly edited: readonly string[];
  readonly read: readonly string[];
}

function namesIn({ tool, fields, text }: Call): Names {
  const inFolder = (name: string): string => underFolder(folderIn(fields), name);
  const patched = patchTexts(fields, text).flatMap(filesPatched);
  const path = pathIn(fields);
  const paths = path === '' ? [] : [path];
  // Some clients have one tool for everything, and its argument `command` names the action.
  const isEdit = EDITS.test(tool) && fields['command'] !== 'view';
  const printed = isEdit ? [] : filesPrinted(commandIn(fields));
  const edited = [...patched, ...(isEdit ? paths : [])];
  const read = [...printed, ...(isEdit ? [] : paths)];
  return {
    edited: edited.slice(0, CALL_NAMES_MAX).map(inFolder),
    read: read.slice(0, CALL_NAMES_MAX).map(inFolder),
  };
}

/**
 * Returns the texts in which a call may have a patch: the whole argument if it has no fields, otherwise its text fields
 * and the command. None if the argument has no patch.
 */
function patchTexts(fields: Fields, text: string): readonly string[] {
  if (!text.includes(PATCH)) return [];
  const values = Object.values(fields);
  if (values.length === 0) return [text];
  const texts = values.filter((value) => typeof value === 'string');
  return [...texts, commandIn(fields)];
}

function filesPatched(text: string): readonly string[] {
  if (!text.includes(PATCH)) return [];
  const matches = text.slice(0, PATCH_CHARS_MAX).matchAll(PATCHED);
  return Array.from(matches, ([, name = '']) => name.trim());
}

function folderIn(fields: Fields): string {
  const folder = fields['workdir'] ?? fields['cwd'];
  return typeof folder === 'string' ? folder : '';
}

function underFolder(folder: string, name: string): string {
  return folder === '' || /^(?:[/\\]|[A-Za-z]:)/.test(name) ? name : `${folder}/${name}`;
}

function baseOf(name: string): string {
  return name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1);
}

/** Programs that print the files that they name. */
const PRINTERS: ReadonlySet<string> = new Set(
  'cat bat batcat head tail nl less more sed'.split(' '),
);
// Number of characters of a command that are read. Longer commands mostly write a text.
const COMMAND_CHARS = 4_096;
// This sign introduces a text that the command writes. The text behind the sign is not read.
const HERE_DOCUMENT = '<<';
const WORDS = /'[^']*'|"[^"]*"|[<>]+&?\d?|[^\s'"<>]+/g;

/**
 * Returns the files that a shell command prints, whole or in part, by the names in the command. Shell expansions and
 * quotes inside a word are not resolved, so such a file is missed.
 */
export function filesPrinted(command: string): readonly string[] {
  const [text = ''] = command.slice(0, COMMAND_CHARS).split(HERE_DOCUMENT);
  return text.split(/&&|[|;\n]/).flatMap(filesOfOne);
}

function filesOfOne(command: string): readonly string[] {
  const [name = '', ...words] = command.match(WORDS) ?? [];
  const printer = name.slice(name.lastIndexOf('/') + 1);
  if (!PRINTERS.has(printer)) return [];
  const isSed = printer === 'sed';
  // sed counts only with -n, with which it prints parts of a file. Without -n it edits a text, and with -i a file.
  if (isSed && (!words.includes('-n') || words.some((word) => word.startsWith('-i')))) return [];
  const files = words.filter((word, at) => !isOption(word) && !words[at - 1]?.includes('>'));
  return files.slice(isSed ? 1 : 0).map(unquoted);
}

/** Says whether a word is an option, an option's number, or a redirection. */
function isOption(word: string): boolean {
  return /^(?:[-+].*|\d+|[<>].*)$/.test(word);
}

function unquoted(word: string): string {
  return /^['"]/.test(word) ? word.slice(1, -1) : word;
}
