/**
 * Reads a request body once and remembers what it read.
 *
 * The bytes stay the truth: nothing here changes or rebuilds them. A body is a view only when it is
 * valid JSON through and through, and that is proven in parts: every element of the list is parsed
 * by itself, and so is the shell, the body with its list emptied. The parts are what makes the next
 * request of the same conversation cheap: what it has in common with the one before is not read again.
 */
import { commonPrefix } from '../bytes/common-prefix.ts';
import { markedMs } from '../conversation/cache-marks.ts';
import type { Dialect } from '../conversation/dialect.ts';
import { findPayload, type Media, mediaIn } from './media.ts';
import { dialectOf, readItem } from '../dialects/dialects.ts';
import { isRecord } from '../bytes/json-fields.ts';
import { chainFingerprint, digestItem, digestTextInput } from '../conversation/fingerprint.ts';
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
} from '../bytes/json-scan.ts';
import { addItem } from '../conversation/so-far.ts';
import { estimateTokens } from '../bytes/tokens.ts';
import type { Span } from '../bytes/span.ts';
import type { Item, ItemTraits, RequestView, Shell, SoFar } from '../conversation/view.ts';

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
  const shared = previous === undefined ? 0 : commonPrefix(previous.bytes, bytes);
  return viewFrom(bytes, dialect, previous === undefined ? undefined : { previous, shared });
}

/** An earlier view, and how many of its first bytes the new body has too. */
export interface Earlier {
  readonly previous: RequestView;
  readonly shared: number;
}

/** viewRequest() for a caller that has compared the bodies already. */
export function viewFrom(
  bytes: Buffer,
  dialect: Dialect,
  earlier: Earlier | undefined,
): RequestView | undefined {
  const known = earlier?.previous.dialect === dialect ? compareWith(earlier, bytes) : undefined;
  const { listKey, takesTextInput } = dialectOf(dialect);
  const start = known?.previous.list.start ?? findMember(bytes, listKey);
  const isTextInput = takesTextInput && opensString(bytes, start);
  const read = isTextInput
    ? readTextInput(bytes, { dialect, start })
    : readList(bytes, { dialect, start, items: known?.items ?? [] });
  if (read === undefined) return undefined;
  const { list, items } = read;
  const shell = readShell(bytes, { dialect, list, previous: known?.previous });
  if (shell === undefined) return undefined;
  const tokens = shell.tokens + (items.at(-1)?.soFar.tokens ?? 0);
  return { dialect, bytes, list, isTextInput, items, shell, tokens };
}

interface Known {
  /** Has the same bytes up to and including the first one of its list, or of its string. */
  readonly previous: RequestView;
  /** Its items that stand in the new body too, at the same place. */
  readonly items: readonly Item[];
}

function compareWith({ previous, shared }: Earlier, bytes: Buffer): Known | undefined {
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
    last = readOne(bytes, at, { dialect, index: all.length, last });
    if (last === undefined) return undefined;
    all.push(last);
    at = nextElement(bytes, last.end);
  }
  const end = listEnd(bytes, last?.end ?? start + 1);
  return end === -1 ? undefined : { list: { start, end }, items: all };
}

interface ItemPlace {
  readonly dialect: Dialect;
  readonly index: number;
  /** The item before it. */
  readonly last: Item | undefined;
}

function readOne(bytes: Buffer, start: number, place: ItemPlace): Item | undefined {
  const end = valueEnd(bytes, start, ELEMENT_LEVELS);
  if (end === -1) return undefined;
  const span = { start, end };
  const parsed = parseJson(bytes, span);
  if (parsed === undefined) return undefined;
  const traits = readItem(place.dialect, parsed.value);
  const tokens = itemTokens(bytes, span, mediaIn(place.dialect, parsed.value));
  const cacheMs = markedMs(parsed.value);
  return makeItem(traits, {
    span,
    digest: digestItem(bytes, span),
    fingerprintBefore: place.last?.fingerprint ?? '',
    tokens,
    soFar: addItem(place.last?.soFar, traits, { index: place.index, tokens, cacheMs }),
  });
}

/** The estimate of an item's bytes, with the provider's rule for what is not text. */
function itemTokens(bytes: Buffer, { start, end }: Span, media: readonly Media[]): number {
  const upToEnd = bytes.subarray(0, end);
  let at = start;
  let tokens = 0;
  for (const { payload, tokens: own } of media) {
    tokens += own;
    const found = payload === '' ? undefined : findPayload(upToEnd, payload, at);
    if (found === undefined) continue;
    tokens += estimateTokens(bytes, at, found.start);
    at = found.end;
  }
  return tokens + estimateTokens(bytes, at, end);
}

interface ItemFacts {
  readonly span: Span;
  readonly digest: string;
  readonly fingerprintBefore: string;
  readonly tokens: number;
  readonly soFar: SoFar;
}

// Every member in one order: items of one shape are read several times faster than items of many.
function makeItem(traits: ItemTraits, facts: ItemFacts): Item {
  return {
    start: facts.span.start,
    end: facts.span.end,
    role: traits.role,
    humanText: traits.humanText,
    assistantText: traits.assistantText,
    toolCalls: traits.toolCalls,
    toolResultIds: traits.toolResultIds,
    hasReasoning: traits.hasReasoning,
    isReference: traits.isReference,
    isInterruption: traits.isInterruption,
    isSummary: traits.isSummary,
    isUnverified: traits.isUnverified,
    workingFolder: traits.workingFolder,
    statedBy: traits.statedBy,
    branch: traits.branch,
    clientOrder: traits.clientOrder,
    digest: facts.digest,
    fingerprint: chainFingerprint(facts.fingerprintBefore, facts.digest),
    tokens: facts.tokens,
    soFar: facts.soFar,
  };
}

function readTextInput(
  bytes: Buffer,
  { dialect, start }: Pick<ListStart, 'dialect' | 'start'>,
): ListRead | undefined {
  const end = stringEnd(bytes, start);
  const list = { start, end };
  const parsed = end === -1 ? undefined : parseJson(bytes, list);
  if (parsed === undefined) return undefined;
  const traits = readItem(dialect, { role: 'user', content: parsed.value });
  const tokens = estimateTokens(bytes, start, end);
  const item = makeItem(traits, {
    span: list,
    digest: digestTextInput(bytes, list),
    fingerprintBefore: '',
    tokens,
    soFar: addItem(undefined, traits, { index: 0, tokens, cacheMs: 0 }),
  });
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
  if (!endsWithout(bytes, list.end, dialectOf(dialect).listKey)) return undefined;
  const emptied = Buffer.concat([bytes.subarray(0, list.start), EMPTY_LIST, after]);
  const parsed = parseJson(emptied, { start: 0, end: emptied.length });
  if (parsed === undefined || !isRecord(parsed.value)) return undefined;
  const tokens = estimateTokens(bytes, 0, list.start) + estimateTokens(bytes, list.end);
  return { value: parsed.value, tokens };
}
