import { asText, type Fields } from '../bytes/json-fields.ts';
import { memberValue, opensObject, parseSpan } from '../bytes/json-scan.ts';
import type { Item, RequestView } from '../conversation/view.ts';
import { type Call, callsOf, commandIn, pathIn, dialectOf } from '../dialects/dialects.ts';
import { textsOf } from '../dialects/common.ts';
import { takesBlock } from '../plan/item-edits.ts';

/**
 * Reads what an agent does after a prompt: the files that it opens, the names that it searches for, the commands that
 * it runs, the errors that it gets. These say more about the work than the prompt did, so svc asks the memory once more
 * with them, which is called a second look. What this file reads from calls and outputs serves only this question: svc
 * neither stores nor indexes it.
 */
export interface Action {
  /** Files that the calls name. */
  readonly files: readonly string[];
  /** Names of code, settings and tools that the agent searches for or runs. */
  readonly names: readonly string[];
  /** The shell commands that the agent runs. */
  readonly commands: readonly string[];
  /** Lines of outputs that report an error. */
  readonly errors: readonly string[];
}

/**
 * Number of calls after which svc takes its second look, once per prompt. On 572 prompts of real sessions, a look after
 * four calls found something for twice as many prompts as a look after two; after six it found few more.
 */
export const CALLS_MIN = 4;
/** Bound on the items after the prompt that are read: the newest ones. */
const ITEMS_MAX = 32;
const ITEM_BYTES_MAX = 128 * 1024;
const EACH_MAX = 16;
const ERROR_CHARS_MAX = 200;

/** Says whether the agent did enough after the prompt for a second look. `prompt`: the index of its item. */
export function hasActed({ items }: RequestView, prompt: number): boolean {
  let calls = 0;
  for (let at = items.length - 1; at > prompt && calls < CALLS_MIN; at -= 1) {
    calls += items[at]?.toolCalls.length ?? 0;
  }
  return calls >= CALLS_MIN;
}

/** Returns what the agent did after the prompt at index `prompt`; undefined if too little for a second look. */
export function actionOf(view: RequestView, prompt: number): Action | undefined {
  if (!hasActed(view, prompt)) return undefined;
  const loop = view.items.slice(prompt + 1);
  const near = loop.slice(-ITEMS_MAX).filter(({ start, end }) => end - start <= ITEM_BYTES_MAX);
  const calls = near.flatMap((item) => (item.toolCalls.length > 0 ? callsOf(view, item) : []));
  const commands = calls.map(({ fields }) => commandIn(fields)).filter((text) => text !== '');
  const action = {
    files: distinct(calls.flatMap(filesIn)),
    names: distinct(calls.flatMap(namesIn)),
    commands: distinct(commands),
    errors: distinct(near.flatMap((item) => errorsIn(view, item))),
  };
  const isEmpty = Object.values(action).every((list) => list.length === 0);
  return isEmpty ? undefined : action;
}

/**
 * Returns the index of the newest tool result if a block may follow it: neither model work nor a human prompt comes
 * after it, so the request most likely sends it for the first time.
 */
export function newestResult(view: RequestView): number | undefined {
  for (let at = view.items.length - 1; at >= 0; at -= 1) {
    const item = view.items[at];
    if (item === undefined || item.humanText !== '' || item.role === 'assistant') return undefined;
    if (item.toolResultIds.length > 0) return takesBlock(view, item) ? at : undefined;
    if (item.hasReasoning) return undefined;
  }
  return undefined;
}

/** Returns the newest EACH_MAX texts, each once. */
function distinct(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.toReversed())].slice(0, EACH_MAX);
}

const PATH = /(?:[\w@.~-]+\/)+[\w@.-]*\w|\b[\w-]+\.[A-Za-z]\w{0,4}\b/g;
const PATCHED = /^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm;
const TEXT_CHARS_MAX = 16_384;

function filesIn({ fields, text }: Call): readonly string[] {
  const path = pathIn(fields);
  const command = commandIn(fields).slice(0, TEXT_CHARS_MAX);
  const patched = Array.from(
    text.slice(0, TEXT_CHARS_MAX).replaceAll('\\n', '\n').matchAll(PATCHED),
  );
  const named = command.match(PATH) ?? [];
  return [path, ...patched.map(([, name = '']) => name.trim()), ...named].filter(isFile);
}

/** Says whether a path names a file. Without an extension it is a folder, or a word with a slash. */
function isFile(path: string): boolean {
  return /[^/\\]\.[A-Za-z]\w{0,5}$/.test(path) && !/^\d+(?:\.\d+)*$/.test(path);
}

/** Parameters in which tools receive a search text. */
const SEARCHED = ['pattern', 'query', 'regex', 'symbol', 'name'] as const;

/** Matches words that may be names. */
const NAME = /[A-Za-z_$][\w$]*(?:[-:.][A-Za-z_$][\w$]*)*/g;
/** Matches a word that looks like a name in code: it has a sign or a capital inside. */
const IS_CHOSEN = /[a-z\d][A-Z]|[A-Za-z\d][_:]+[A-Za-z]|^[A-Z][A-Z\d_]{3,}$|^[A-Z][a-z]+[A-Z]/;
const NAME_CHARS_MIN = 5;

function namesIn({ fields }: Call): readonly string[] {
  const command = commandIn(fields).slice(0, TEXT_CHARS_MAX);
  return [...searchedIn(fields), command].flatMap((text) => namesOf(text));
}

function searchedIn(fields: Fields): readonly string[] {
  return SEARCHED.map((name) => asText(fields[name]));
}

function namesOf(text: string): readonly string[] {
  return (text.match(NAME) ?? []).filter(
    (word) => word.length >= NAME_CHARS_MIN && IS_CHOSEN.test(word),
  );
}

const ERROR =
  /\b[A-Za-z]*(?:Error|Exception)\b|\b(?:error|fatal|panic|failed|failure|cannot|denied|refused|undefined|unresolved|not found|no such)\b/i;
/** Matches a line of a listing or of code, which may contain the word "error" but reports none. */
const QUOTES_CODE = /^\s*(?:\d+[:→\t]|\/\/|[#*+-])|[{;,]\s*$|\w\(|[:=]=|\.\w+:\d+:/;

/** Says whether a line reports an error and is neither code nor part of a listing. */
export function isErrorLine(line: string): boolean {
  return line.length <= ERROR_CHARS_MAX && ERROR.test(line) && !QUOTES_CODE.test(line);
}

/** Matches how Claude Code reports that a call itself was wrong, which says nothing about the project. */
const WRONG_CALL = /^\s*<tool_use_error>/;

function errorsIn({ bytes, dialect }: RequestView, item: Item): readonly string[] {
  if (item.toolResultIds.length === 0 || item.role === 'assistant') return [];
  return dialectOf(dialect)
    .resultPlaces(bytes, item)
    .flatMap(({ open, textName }) => {
      const value = opensObject(bytes, open) ? memberValue(bytes, open, textName) : undefined;
      const said = value === undefined ? [] : textsOf(parseSpan(bytes, value));
      return said.flatMap((text) => (WRONG_CALL.test(text) ? [] : text.split('\n')));
    })
    .filter(isErrorLine)
    .map((line) => line.trim())
    .slice(0, EACH_MAX);
}

/** Returns the action as text, to find the rules that apply to it. */
export function textOfAction({ commands, files, names, errors }: Action): string {
  return [...commands, ...files, ...names, ...errors].join('\n');
}

/** Returns the action as words of a question, for a memory that accepts only questions. */
export function wordsOf({ files, names, errors }: Action): string {
  return [...files, ...names, ...errors].join('\n');
}
