import type {
  ConversationOwner,
  ElisionKind,
  FoundEntries,
  LedgerAddress,
  LedgerEntry,
  LeftOut,
  ScopeOwner,
} from '../ledger/entries.ts';
import { KEPT_EXCHANGES, type Omission } from './omissions.ts';
import type { ToolOutput } from './outputs.ts';
import type { Item, RequestView } from '../conversation/view.ts';

/**
 * Remembers batches, so that a text once left out stays left out: in the next request, after a
 * restart, in a fork, in a resumed session. A batch belongs to the conversation up to the item at
 * which it was made. When the person goes back before that item, the request no longer holds it,
 * and the batch does not apply: what it left out was sent whole in front of that item. Where it never
 * was, because the client edited its history, an output stays left out from its own item on, and an
 * exchange from the end of the next exchange on.
 */

// The conversation at the newest item; and at the one before, in case the client rewrites its last
// message in the next request.
const ANCHORS = 2;
// 72 random bits: two outputs of one conversation never share them, and the text is proven anyway.
const DIGEST_CHARS = 12;

/** A request, whose it is, and whether something is left out of it or only measured. */
export interface ElisionPlace {
  readonly view: RequestView;
  readonly owner: ConversationOwner & ScopeOwner;
  readonly elision: ElisionKind;
}

/**
 * The address that says whether conversations that begin like this one have batches at all. Most
 * have none, so svc need not look them up item by item. Undefined before the first anchor.
 */
export function elisionMark({ view, owner, elision }: ElisionPlace) {
  const first = view.items.find(isAnchor);
  if (first === undefined) return undefined;
  const { tenant, scope } = owner;
  const { fingerprint } = first;
  return { kind: 'batch-mark', elision, tenant, scope, fingerprint } as const;
}

/** Something may have left this request before: it has a tool output, or more exchanges than are kept. */
export function mayRepeat({ items }: RequestView): boolean {
  if ((items.at(-1)?.soFar.exchange.number ?? 0) >= KEPT_EXCHANGES) return true;
  return items.some(({ toolResultIds }) => toolResultIds.length > 0);
}

/** The addresses at which batches of this conversation may be known. */
export function elisionAddresses(place: ElisionPlace): readonly LedgerAddress[] {
  return batchPlaces(place).flatMap(({ own, shared }) => [own, shared]);
}

/** A batch, and the index of the item at which it was made. */
export interface FoundBatch {
  readonly at: number;
  readonly leftOut: LeftOut;
}

/**
 * The batches of this conversation: at each item the shared one, which was there first, and its own. A
 * conversation that left out more at this item had found the shared one.
 */
export function batchesIn(found: FoundEntries, place: ElisionPlace): readonly FoundBatch[] {
  return batchPlaces(place).flatMap(({ at, own, shared }) => {
    const its = found.get(own)?.leftOut;
    const others = found.get(shared)?.leftOut;
    const both = [others, isSame(its, others) ? undefined : its];
    return both.flatMap((leftOut) => (leftOut === undefined ? [] : [{ at, leftOut }]));
  });
}

function isSame(one: LeftOut | undefined, other: LeftOut | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/**
 * The outputs that these batches left out. Each mark is read once, and each output is looked up once,
 * however many batches there are.
 */
export function repeatedOutputs(
  outputs: readonly ToolOutput[],
  batches: readonly LeftOut[],
): ReadonlySet<ToolOutput> {
  if (batches.length === 0) return new Set();
  const ends = new Map<string, number>();
  for (const { before, marks } of batches) {
    for (const mark of marks) ends.set(mark, Math.max(ends.get(mark) ?? 0, before));
  }
  return new Set(outputs.filter((output) => output.item < (ends.get(output.mark) ?? 0)));
}

/** The exchanges that these batches left out. */
export function repeatedOmissions(
  omissions: readonly Omission[],
  batches: readonly LeftOut[],
): ReadonlySet<Omission> {
  if (omissions.length === 0 || batches.length === 0) return new Set();
  const known = new Set(batches.flatMap(({ marks }) => marks));
  return new Set(omissions.filter((omission) => known.has(exchangeMark(omission))));
}

/** When a batch leaves, and what was sent of its conversation before. */
export interface BatchMoment {
  readonly at: number;
  /** As firstUnsentItem() says; undefined too where the ledger was not asked, or did not know. */
  readonly firstUnsent?: number | undefined;
}

/** The outputs and exchanges that are left out for the first time. */
export interface Batch {
  readonly batch: readonly ToolOutput[];
  readonly omissions: readonly Omission[];
}

/** The ledger entries of a batch. */
export function elisionEntries(
  { batch, omissions }: Batch,
  place: ElisionPlace,
  moment: BatchMoment,
): readonly LedgerEntry[] {
  // Two outputs may say the same: those behind the last one of the batch are not in it.
  const before = batch.reduce((last, { item }) => Math.max(last, item), -1) + 1;
  const marks = [...batch.map(({ mark }) => mark), ...omissions.map(exchangeMark)];
  const mark = elisionMark(place);
  const { at } = moment;
  return [
    ...(mark === undefined ? [] : [{ ...mark, at }]),
    ...entriesAtEnd({ before, marks }, place, at),
    ...entriesAtUnsent({ batch, omissions, before }, place, moment),
  ];
}

/**
 * No request sent the items from `firstUnsent` on before, so none sent their outputs whole. Where the
 * next request goes another way in front of the batch's own anchors, it shares items with this request
 * alone, and repeats what was left out of them. So an output is noted at its own item, which has the stub.
 * One in front of `firstUnsent` may have gone whole: it is noted at the first anchor behind. There the
 * exchanges are noted too, because their marks say where they are out.
 */
function entriesAtUnsent(
  { batch, omissions, before }: Batch & { readonly before: number },
  { view, owner: { tenant, scope }, elision }: ElisionPlace,
  { at, firstUnsent }: BatchMoment,
): readonly LedgerEntry[] {
  const { items } = view;
  if (firstUnsent === undefined) return [];
  const start = items.findIndex((item, index) => index >= firstUnsent && isAnchor(item));
  if (start === -1) return [];
  const marks = new Map<number, string[]>();
  const note = (item: number, mark: string): void => {
    const index = Math.max(item, start);
    const noted = marks.get(index);
    if (noted === undefined) marks.set(index, [mark]);
    else noted.push(mark);
  };
  for (const { item, mark } of batch) note(item, mark);
  for (const omission of omissions) note(start, exchangeMark(omission));
  const ends = new Set(anchorsOf(view, ANCHORS).map(({ at: index }) => index));
  return [...marks].flatMap(([index, noted]): LedgerEntry[] => {
    const { fingerprint } = items[index] ?? {};
    if (fingerprint === undefined || ends.has(index)) return [];
    // New items may follow the last output of the batch, and one of them may have its words.
    const end = Math.min(index + 1, before);
    const leftOut = { before: end, marks: noted };
    return [{ kind: 'shared-batch', elision, tenant, scope, fingerprint, leftOut, at }];
  });
}

function entriesAtEnd(leftOut: LeftOut, place: ElisionPlace, at: number): readonly LedgerEntry[] {
  return batchPlaces(place, ANCHORS).flatMap(({ own, shared }) => [
    { ...own, leftOut, at },
    { ...shared, leftOut, at },
  ]);
}

function batchPlaces({ view, owner, elision }: ElisionPlace, count?: number) {
  const { tenant, scope, conversation } = owner;
  return anchorsOf(view, count).map(({ at, fingerprint }) => ({
    at,
    own: { kind: 'own-batch', elision, tenant, conversation, fingerprint } as const,
    shared: { kind: 'shared-batch', elision, tenant, scope, fingerprint } as const,
  }));
}

/**
 * Whether a request can end at this item: a person's message or a tool's answer, never a client's
 * mark or note.
 */
function isAnchor({ humanText, toolResultIds }: Item): boolean {
  return humanText !== '' || toolResultIds.length > 0;
}

/** The index of the newest item at which a batch can be made; undefined where there is none. */
export function newestAnchor(view: RequestView): number | undefined {
  return anchorsOf(view, 1)[0]?.at;
}

/** The last `count` of them, in their order. */
function anchorsOf({ items }: RequestView, count = Infinity): readonly Anchor[] {
  const anchors: Anchor[] = [];
  for (let at = items.length - 1; at >= 0 && anchors.length < count; at -= 1) {
    const item = items[at];
    if (item !== undefined && isAnchor(item)) anchors.push({ at, fingerprint: item.fingerprint });
  }
  return anchors.toReversed();
}

interface Anchor {
  readonly at: number;
  readonly fingerprint: string;
}

/** No digest begins with `~`; a fingerprint names one place in one conversation. */
function exchangeMark({ fingerprint }: Omission): string {
  return `~${fingerprint.slice(0, DIGEST_CHARS)}`;
}
