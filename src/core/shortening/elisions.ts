import type { InjectionEntry } from '../recall/injections.ts';
import type { Omission } from './omissions.ts';
import type { ToolOutput } from './outputs.ts';
import type { Item, RequestView } from '../conversation/view.ts';
import type { Measure } from './window.ts';

/**
 * Remembers batches, so that what was left out once stays left out: in the next request, after a
 * restart, in a fork, in a resumed session. A batch belongs to the conversation up to the item at
 * which it was made. A request that does not hold this item, because the person went back before it,
 * is as it was before the batch.
 */

/** In shadow nothing is left out, so what would be is remembered apart. */
export type ElisionKind = 'real' | 'shadow';

// The conversation at the newest item; and at the one before, in case the client rewrites its last
// message in the next request.
const ANCHORS = 2;
// The request before this one ended at one of the last anchors: an assistant may call a few tools at
// once, and each of their answers is one.
const MEASURE_ANCHORS = 16;
// In the place of a batch: from here on nothing is left out any more.
const WHOLE = 'whole';
// 72 random bits: two outputs of one conversation never share them, and the text is proven anyway.
const DIGEST_CHARS = 12;

/**
 * One key that says whether conversations that begin like this one have batches at all: most have
 * none, and are not looked up item by item. Undefined when nobody said anything yet.
 */
export function elisionMark(
  view: RequestView,
  space: string,
  kind: ElisionKind,
): string | undefined {
  const first = view.items.find(isAnchor);
  return first === undefined ? undefined : `m${keyOf(first.fingerprint, space, kind)}`;
}

/** The keys under which batches of this conversation may be known. */
export function elisionKeys(
  view: RequestView,
  space: string,
  kind: ElisionKind,
): readonly string[] {
  return anchorsOf(view).map((fingerprint) => keyOf(fingerprint, space, kind));
}

/** All came back at some item of this conversation, so that the client sees its true size. */
export function isWholeAgain(entries: Iterable<InjectionEntry>): boolean {
  return [...entries].some(({ block }) => block === WHOLE);
}

/** The outputs that these entries left out. */
export function repeatedOutputs(
  outputs: readonly ToolOutput[],
  entries: Iterable<InjectionEntry>,
): ReadonlySet<ToolOutput> {
  const repeated = new Set<ToolOutput>();
  for (const { block } of entries) {
    const [before = '', ...digests] = block.split(' ');
    const known = new Set(digests);
    for (const output of outputs) {
      const isIn = output.item < Number(before) && known.has(shortDigest(output));
      if (isIn) repeated.add(output);
    }
  }
  return repeated;
}

/** The exchanges that these entries left out. */
export function repeatedOmissions(
  omissions: readonly Omission[],
  entries: Iterable<InjectionEntry>,
): ReadonlySet<Omission> {
  const known = new Set([...entries].flatMap(({ block }) => block.split(' ').slice(1)));
  return new Set(omissions.filter((omission) => known.has(exchangeMark(omission))));
}

export interface ElisionPlace {
  readonly view: RequestView;
  readonly space: string;
  readonly kind: ElisionKind;
}

/** What is left out for the first time. */
export interface Batch {
  readonly batch: readonly ToolOutput[];
  readonly omissions: readonly Omission[];
}

/** What the ledger keeps of a batch. */
export function elisionEntries(
  { batch, omissions }: Batch,
  place: ElisionPlace,
  at: number,
): readonly InjectionEntry[] {
  // Two outputs may say the same: those behind the last one of the batch are not in it.
  const before = Math.max(-1, ...batch.map(({ item }) => item)) + 1;
  const marks = [...batch.map(shortDigest), ...omissions.map(exchangeMark)];
  const block = [String(before), ...marks].join(' ');
  const { view, space, kind } = place;
  const mark = elisionMark(view, space, kind);
  return [
    ...(mark === undefined ? [] : [{ key: mark, block: '', ...PLAIN, at }]),
    ...entriesAtEnd(block, place, at),
  ];
}

/** What the ledger keeps of the request in which all came back. */
export function wholeEntries(place: ElisionPlace, at: number): readonly InjectionEntry[] {
  return entriesAtEnd(WHOLE, place, at);
}

const PLAIN = { form: 'text', dropsEarlier: false } as const;

function entriesAtEnd(
  block: string,
  { view, space, kind }: ElisionPlace,
  at: number,
): readonly InjectionEntry[] {
  return anchorsOf(view, ANCHORS).map((fingerprint) => ({
    key: keyOf(fingerprint, space, kind),
    block,
    ...PLAIN,
    at,
  }));
}

/** The keys under which the provider's count of an earlier request may be known, the newest last. */
export function measureKeys(view: RequestView, space: string): readonly string[] {
  return anchorsOf(view, MEASURE_ANCHORS).map((fingerprint) => measureKey(fingerprint, space));
}

/** What the ledger keeps of the provider's count of a request. */
export function measureEntries(
  { counted, estimated }: Measure,
  { view, space }: Omit<ElisionPlace, 'kind'>,
  at: number,
): readonly InjectionEntry[] {
  return anchorsOf(view, 1).map((fingerprint) => ({
    key: measureKey(fingerprint, space),
    block: `${counted} ${estimated}`,
    ...PLAIN,
    at,
  }));
}

/** The newest count that the ledger knows. */
export function measureOf(
  keys: readonly string[],
  entries: ReadonlyMap<string, InjectionEntry>,
): Measure | undefined {
  const newest = keys.findLast((key) => entries.has(key));
  if (newest === undefined) return undefined;
  const [counted = 0, estimated = 0] = (entries.get(newest)?.block ?? '').split(' ').map(Number);
  return { counted, estimated };
}

function measureKey(fingerprint: string, space: string): string {
  return `u:${fingerprint}:${space}`;
}

/** What ends a request: a person's message or a tool's answer. Never a mark or note of the client. */
function isAnchor({ humanText, toolResultIds }: Item): boolean {
  return humanText !== '' || toolResultIds.length > 0;
}

/** The last `count` of them, in their order. */
function anchorsOf({ items }: RequestView, count = Infinity): readonly string[] {
  const fingerprints: string[] = [];
  for (let at = items.length - 1; at >= 0 && fingerprints.length < count; at -= 1) {
    const item = items[at];
    if (item !== undefined && isAnchor(item)) fingerprints.push(item.fingerprint);
  }
  return fingerprints.toReversed();
}

function keyOf(fingerprint: string, space: string, kind: ElisionKind): string {
  return `${kind === 'real' ? 'x' : 'y'}:${fingerprint}:${space}`;
}

/** No digest begins so; a fingerprint stands for one place in one conversation. */
function exchangeMark({ fingerprint }: Omission): string {
  return `~${fingerprint.slice(0, DIGEST_CHARS)}`;
}

function shortDigest({ digest }: ToolOutput): string {
  return digest.slice(0, DIGEST_CHARS);
}
