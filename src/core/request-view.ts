/**
 * Reads a request body once and remembers what it read.
 *
 * The bytes stay the truth: nothing here changes or rebuilds them. A body is a view only when it is
 * valid JSON through and through, and that is proven in parts: every element of the list is parsed
 * by itself, and so is the shell, the body with its list emptied. The parts are what makes the next
 * request of the same conversation cheap: what it has in common with the one before is not read again.
 */
import { commonPrefix } from './common-prefix.ts';
import { type Dialect, listKey } from './dialect.ts';
import { readItem } from './dialects/items.ts';
import { chainFingerprint, digestItem, digestTextInput } from './fingerprint.ts';
import {
  DEPTH_MAX,
  endsWithout,
  findMember,
  firstElement,
  isScalar,
  listEnd,
  nextElement,
  opensList,
  opensString,
  parseJson,
  stringEnd,
  valueEnd,
} from './json-scan.ts';
import { estimateTokens } from './tokens.ts';
import type { Item, RequestView, Shell, Span } from './view.ts';

// An element stands in the list, and the list in the body's object.
const ELEMENT_LEVELS = DEPTH_MAX - 2;

const EMPTY_LIST = Buffer.from('[]');

/**
 * The view of a decoded body. `previous` may be any earlier view; the nearer it is, the less is
 * read, and the result is the same. undefined when the body is not one JSON object with exactly one
 * list (or, in Responses, one string) of the dialect, or nests deeper than 512 levels.
 */
export function viewRequest(
  bytes: Buffer,
  dialect: Dialect,
  previous?: RequestView,
): RequestView | undefined {
  const known = previous?.dialect === dialect ? compareWith(previous, bytes) : undefined;
  const start = known?.previous.list.start ?? findMember(bytes, listKey(dialect));
  const isTextInput = dialect === 'openai_responses' && opensString(bytes, start);
  const read = isTextInput
    ? readTextInput(bytes, start)
    : readList(bytes, { dialect, start, items: known?.items ?? [] });
  if (read === undefined) return undefined;
  const { list, items } = read;
  const shell = readShell(bytes, { dialect, list, previous: known?.previous });
  if (shell === undefined) return undefined;
  const tokens = items.reduce((sum, item) => sum + item.tokens, shell.tokens);
  return { dialect, bytes, list, isTextInput, items, shell, tokens };
}

interface Known {
  /** Has the same bytes up to and including the first one of its list, or of its string. */
  readonly previous: RequestView;
  /** Its items that stand in the new body too, at the same place. */
  readonly items: readonly Item[];
}

function compareWith(previous: RequestView, bytes: Buffer): Known | undefined {
  const shared = commonPrefix(previous.bytes, bytes);
  if (shared <= previous.list.start) return undefined;
  // What ends with the last shared byte ends there in both, unless it is a scalar: 12 is not 123.
  const last = previous.items.findLastIndex(({ start, end }) => {
    return end < shared || (end === shared && !isScalar(bytes, start));
  });
  return { previous, items: previous.items.slice(0, last + 1) };
}

interface ListRead {
  readonly list: Span;
  readonly items: readonly Item[];
}

interface ListStart {
  readonly dialect: Dialect;
  /** Where the list's value begins, or -1. */
  readonly start: number;
  /** The items that are known already: the first ones. */
  readonly items: readonly Item[];
}

function readList(bytes: Buffer, { dialect, start, items }: ListStart): ListRead | undefined {
  if (!opensList(bytes, start)) return undefined;
  const all = [...items];
  let last = all.at(-1);
  let at = last === undefined ? firstElement(bytes, start) : nextElement(bytes, last.end);
  while (at !== -1) {
    last = readOne(bytes, at, { dialect, fingerprint: last?.fingerprint ?? '' });
    if (last === undefined) return undefined;
    all.push(last);
    at = nextElement(bytes, last.end);
  }
  const end = listEnd(bytes, last?.end ?? start + 1);
  return end === -1 ? undefined : { list: { start, end }, items: all };
}

function readOne(
  bytes: Buffer,
  start: number,
  before: { readonly dialect: Dialect; readonly fingerprint: string },
): Item | undefined {
  const end = valueEnd(bytes, start, ELEMENT_LEVELS);
  if (end === -1) return undefined;
  const span = { start, end };
  const parsed = parseJson(bytes, span);
  if (parsed === undefined) return undefined;
  const digest = digestItem(bytes, span);
  return {
    ...readItem(before.dialect, parsed.value),
    ...span,
    digest,
    fingerprint: chainFingerprint(before.fingerprint, digest),
    tokens: estimateTokens(bytes, start, end),
  };
}

function readTextInput(bytes: Buffer, start: number): ListRead | undefined {
  const end = stringEnd(bytes, start);
  const list = { start, end };
  const parsed = end === -1 ? undefined : parseJson(bytes, list);
  if (parsed === undefined) return undefined;
  const digest = digestTextInput(bytes, list);
  const item = {
    ...readItem('openai_responses', { role: 'user', content: parsed.value }),
    ...list,
    digest,
    fingerprint: chainFingerprint('', digest),
    tokens: estimateTokens(bytes, start, end),
  };
  return { list, items: [item] };
}

interface ShellPlace {
  readonly dialect: Dialect;
  readonly list: Span;
  readonly previous: RequestView | undefined;
}

function readShell(bytes: Buffer, { dialect, list, previous }: ShellPlace): Shell | undefined {
  const after = bytes.subarray(list.end);
  if (previous?.bytes.subarray(previous.list.end).equals(after)) return previous.shell;
  if (!endsWithout(bytes, list.end, listKey(dialect))) return undefined;
  const emptied = Buffer.concat([bytes.subarray(0, list.start), EMPTY_LIST, after]);
  const parsed = parseJson(emptied, { start: 0, end: emptied.length });
  if (parsed === undefined || !isRecord(parsed.value)) return undefined;
  const tokens = estimateTokens(bytes, 0, list.start) + estimateTokens(bytes, list.end);
  return { value: parsed.value, tokens };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
