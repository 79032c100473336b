/** Finds several secrets that follow one pattern: in a line of cookies, a Kubernetes secret, a table, an SQL INSERT. */

import {
  hasMixedCharacters,
  isPlaceholder,
  isSimplePassword,
  isBareChosen,
  isChosen,
  isPassPhrase,
  looksRandom,
} from './secret-likeness.ts';
import type { FoundAll, Stretch } from './secret-rule.ts';

const COOKIE = /[ \t]{0,4}([^\s;=[\]"'`,]{1,128})=([^\s;"'`\\<>[\]{},]{0,4096})(?:; {0,2})?/y;
const COOKIE_FLAG = /[ \t]{0,4}(?:HttpOnly|Secure|Partitioned)(?:; {0,2})?/iy;
const COOKIES_MAX = 64;
const SESSION_NAME = /sess|sid|auth|token|jwt|login|remember|ticket|key/i;
const COOKIE_ATTRIBUTE = /^(?:path|domain|expires|max-age|samesite|priority|version)$/i;
/** Least length of a value that is masked because of its cookie's name. A random value is masked under any name. */
const SESSION_CHARS_MIN = 8;

/** Finds the values of a Cookie or Set-Cookie header that may identify a session. */
export function findCookies(headEnd: number, text: string): FoundAll {
  const secrets: Stretch[] = [];
  let at = headEnd;
  for (let count = 0; count < COOKIES_MAX; count += 1) {
    COOKIE_FLAG.lastIndex = at;
    if (COOKIE_FLAG.test(text)) {
      at = COOKIE_FLAG.lastIndex;
      continue;
    }
    COOKIE.lastIndex = at;
    const [whole, name = '', value = ''] = COOKIE.exec(text) ?? [];
    if (whole === undefined) break;
    const start = text.indexOf('=', at) + 1;
    if (isSession(name, value)) secrets.push({ start, end: start + value.length });
    at += whole.length;
  }
  return { secrets, end: at };
}

function isSession(name: string, value: string): boolean {
  if (COOKIE_ATTRIBUTE.test(name) || isPlaceholder(value.slice(0, 64))) return false;
  if (looksRandom(value.slice(0, 64))) return true;
  return (
    value.length >= SESSION_CHARS_MIN &&
    SESSION_NAME.test(name) &&
    (hasMixedCharacters(value) || isBareChosen(value))
  );
}

/** Characters before and behind `kind: Secret` that are searched for its data. In sorted files the data come first. */
const DATA_BEFORE_CHARS = 800;
const DATA_AFTER_CHARS = 1600;
const DATA_HEAD = /\b(?:data|stringData)["']?:[ \t]{0,4}\{?/g;
const ENTRY =
  /(?:\s{0,80}#[^\n]{0,200}\n){0,4}\s{1,80}["']?([\w.-]{1,80})["']?:[ \t]{0,4}(?:[|>][+-]?[ \t]{0,4}\n[ \t]{1,40})?["']?([A-Za-z0-9+/]{8,4096}={0,3})["']?,?(?=\s|\}|$)/y;
/** Matches an entry below `stringData`, where a value is not base64. */
const STRING_ENTRY =
  /(?:\s{0,80}#[^\n]{0,200}\n){0,4}\s{1,80}["']?([\w.-]{1,80})["']?:[ \t]{0,4}["']?([^\s"'\\<>[\]{}|,]{4,4096})["']?,?(?=\s|\}|$)/y;
const SKIPPED_ENTRY =
  /\s{1,80}["']?[\w.-]{1,80}["']?:[ \t]{0,4}(?:\{\{[^\n]{0,200}|["']{2})(?=\n)/y;

/** Finds the values of a Kubernetes secret whose `kind: Secret` ends at `headEnd`. */
export function findKubernetesValues(headEnd: number, text: string): FoundAll {
  const from = Math.max(0, headEnd - DATA_BEFORE_CHARS);
  const region = text.slice(from, headEnd + DATA_AFTER_CHARS);
  const secrets: Stretch[] = [];
  for (const head of region.matchAll(DATA_HEAD)) {
    let at = head.index + head[0].length;
    const entry = head[0].startsWith('string') ? STRING_ENTRY : ENTRY;
    for (let entries = 0; entries < COOKIES_MAX; entries += 1) {
      SKIPPED_ENTRY.lastIndex = at;
      if (SKIPPED_ENTRY.test(region)) {
        at = SKIPPED_ENTRY.lastIndex;
        continue;
      }
      entry.lastIndex = at;
      const [whole, name = '', value = ''] = entry.exec(region) ?? [];
      if (whole === undefined || name === 'kind' || name === 'type') break;
      const start = from + at + whole.lastIndexOf(value);
      secrets.push({ start, end: start + value.length });
      at += whole.length;
    }
  }
  return { secrets, end: headEnd + DATA_AFTER_CHARS };
}

/** Bound on the characters of a table's heading row up to the end of the password column's name. */
const HEAD_CHARS_MAX = 400;
const ROW_CHARS_MAX = 4096;
/** Matches the line below the headings of a Markdown, psql or MySQL table. */
const RULE_LINE = /^[|\s:+-]*-[|\s:+-]*$/;
const CSV_HEAD = /^"?[\w-]{1,32}"?(?:[,;\t]"?[\w-]{1,32}"?){1,32}\r?$/;

/** Finds the secrets in a table's column. `headEnd`: the index at which the column's heading ends. */
export function findTableCells(headEnd: number, text: string): FoundAll {
  const nothing = { secrets: [], end: headEnd };
  const lineStart = text.slice(Math.max(0, headEnd - HEAD_CHARS_MAX), headEnd).lastIndexOf('\n');
  const isFirst = lineStart === -1;
  if (isFirst && headEnd > HEAD_CHARS_MAX) return nothing;
  const start = isFirst ? 0 : Math.max(0, headEnd - HEAD_CHARS_MAX) + lineStart + 1;
  const head = lineAt(text, start);
  if (head === undefined) return nothing;
  const separator = ['|', '\t', ';'].find((mark) => head.includes(mark)) ?? ',';
  const columns = head.split(separator).length;
  const column = text.slice(start, headEnd).split(separator).length - 1;
  let at = start + head.length + 1;
  const below = lineAt(text, at);
  if (below === undefined || columns < 2) return nothing;
  if (separator === '|' ? !RULE_LINE.test(below) : !CSV_HEAD.test(head)) return nothing;
  const secrets: Stretch[] = [];
  for (let row = lineAt(text, at); row !== undefined && row !== ''; row = lineAt(text, at)) {
    const cells = row.split(separator);
    if (cells.length === columns) {
      const cell = cells[column] ?? '';
      const from = at + cells.slice(0, column).join(separator).length + (column > 0 ? 1 : 0);
      const secret = cellSecret(cell, from);
      if (secret !== undefined) secrets.push(secret);
    } else if (!RULE_LINE.test(row)) break;
    at += row.length + 1;
  }
  return { secrets, end: Math.max(headEnd, Math.min(at, text.length)) };
}

/** Returns a line; undefined past the end of the text, or if the line is too long. */
function lineAt(text: string, start: number): string | undefined {
  if (start >= text.length) return undefined;
  const line = text.slice(start, start + ROW_CHARS_MAX);
  const end = line.indexOf('\n');
  if (end === -1) return line.length < ROW_CHARS_MAX ? line : undefined;
  return line.slice(0, end);
}

function cellSecret(cell: string, from: number): Stretch | undefined {
  const [whole = '', lead = '', value = ''] =
    /^([ \t"'`]*)([^\s"'`\\<>[\]]{4,256})/.exec(cell) ?? [];
  const isAlone = /^[ \t"'`\r]*$/.test(cell.slice(whole.length));
  const isSecret = isSimplePassword(value) || isChosen(value) || looksRandom(value);
  if (!isAlone || !isSecret) return undefined;
  return { start: from + lead.length, end: from + whole.length };
}

const COLUMNS = /([^()[\]]{1,600})\)\s{1,40}(?:values?)\s{0,40}/iy;
const SECRET_COLUMN =
  /(?:pass(?:w(?:or)?d|wort|phrase|code)?|pwd|kennwort|secret|api_?key|token)$/i;
const ROW = /[\s,]{0,40}\(/y;
/** Matches an SQL value: in quotes, or up to the comma. */
const CELL =
  /\s{0,20}(?:[nN]?'((?:[^'\n[\]]|''){0,400})'|"([^"\n[\]]{0,400})"|[^'",()[\]]{0,200}(?:\([^()[\]]{0,200}\))?)\s{0,20}(,|\))/y;
const ROWS_MAX = 200;
const CELLS_MAX = 40;

/** Finds passwords in `INSERT INTO users (name, password) VALUES ('ops', '…')` after the bracket at `headEnd`. */
export function findInsertedValues(headEnd: number, text: string): FoundAll {
  const secrets: Stretch[] = [];
  COLUMNS.lastIndex = headEnd;
  const [head = '', list = ''] = COLUMNS.exec(text) ?? [];
  if (head === '') return { secrets, end: headEnd };
  const isSecret = list
    .split(',')
    .map((name) => SECRET_COLUMN.test(name.replaceAll(/["'`\s]/g, '')));
  let at = headEnd + head.length;
  for (let row = 0; row < ROWS_MAX; row += 1) {
    ROW.lastIndex = at;
    if (!ROW.test(text)) break;
    at = ROW.lastIndex;
    for (let cell = 0; cell < CELLS_MAX; cell += 1) {
      CELL.lastIndex = at;
      const found = CELL.exec(text);
      if (found === null) return { secrets, end: at };
      const value = found[1] ?? found[2] ?? '';
      if (isSecret[cell] === true && isInserted(value)) {
        const start = at + found[0].indexOf(value);
        secrets.push({ start, end: start + value.length });
      }
      at += found[0].length;
      if (found[3] === ')') break;
    }
  }
  return { secrets, end: at };
}

function isInserted(value: string): boolean {
  if (value.length < 4 || isPlaceholder(value)) return false;
  return (
    isSimplePassword(value) || isChosen(value) || looksRandom(value) || isPassPhrase(value, false)
  );
}
