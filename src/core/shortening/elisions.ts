import type {
  AddressOf,
  ConversationOwner,
  ElisionKind,
  FoundEntries,
  LedgerEntry,
  LeftOut,
  ScopeOwner,
} from '../ledger/entries.ts';
import { KEPT_EXCHANGES, type Omission } from './omissions.ts';
import type { ToolOutput } from './outputs.ts';
import type { Item, RequestView } from '../conversation/view.ts';

/**
 * Records batches in the ledger. A batch is the texts that one request was the first to leave out. It stays left out in
 * the next request, after a restart, in a fork and in a resumed session. It belongs to the conversation up to the last
 * item of that request. If the user returns to an earlier item, the batch does not apply, because requests up to there
 * had its texts in full. A text that no request had in full is also recorded at an earlier item: see entriesAtUnsent.
 */

// A batch is recorded at the two newest items at which a request can end, in case the client rewrites its last message.
const ANCHORS = 2;
// Characters of an exchange's mark, by which a batch names the exchange. With 72 bits two exchanges hardly share one.
const DIGEST_CHARS = 12;

/** A request, its owner, and whether texts are left out or only measured. */
export interface ElisionPlace {
  readonly view: RequestView;
  readonly owner: ConversationOwner & ScopeOwner;
  readonly elision: ElisionKind;
}

/**
 * Returns the ledger address of the entry that exists if any conversation with this beginning has a batch. If it does
 * not exist, as for most conversations, svc need not look for batches at each item. Undefined if the conversation has
 * no item at which a batch can be made.
 */
export function elisionMark({ view, owner, elision }: ElisionPlace) {
  const first = view.items.find(isAnchor);
  if (first === undefined) return undefined;
  const { tenant, scope } = owner;
  const { fingerprint } = first;
  return { kind: 'batch-mark', elision, tenant, scope, fingerprint } as const;
}

/** Says whether a batch is possible: the conversation has an output, or more than KEPT_EXCHANGES exchanges. */
export function mayRepeat({ items }: RequestView): boolean {
  if ((items.at(-1)?.soFar.exchange.number ?? 0) >= KEPT_EXCHANGES) return true;
  return items.some(({ toolResultIds }) => toolResultIds.length > 0);
}

/** A batch, and the index of the item at which it was made. */
export interface FoundBatch {
  readonly at: number;
  readonly leftOut: LeftOut;
}

/**
 * Returns the batches of this conversation. At each item first comes the shared batch, which any conversation with the
 * same beginning may have recorded, and then this conversation's own batch if the two differ.
 */
export function batchesIn(
  found: FoundEntries,
  places: readonly BatchPlace[],
): readonly FoundBatch[] {
  return places.flatMap(({ at, own, shared }) => {
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
 * Returns the outputs that these batches left out: a batch must have the output's mark, and the output must be before
 * the batch's item `before`. The time is linear in marks and outputs, however many batches there are.
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

/** Returns the exchanges that these batches left out. */
export function repeatedOmissions(
  omissions: readonly Omission[],
  batches: readonly LeftOut[],
): ReadonlySet<Omission> {
  if (omissions.length === 0 || batches.length === 0) return new Set();
  const known = new Set(batches.flatMap(({ marks }) => marks));
  return new Set(omissions.filter((omission) => known.has(exchangeMark(omission))));
}

export interface BatchMoment {
  /** When the batch is made, in milliseconds since 1970. */
  readonly at: number;
  /** The index of the first item that no request has sent before; undefined if all were sent, or if it is unknown. */
  readonly firstUnsent?: number | undefined;
}

/** The outputs and exchanges that are left out for the first time. */
export interface Batch {
  readonly batch: readonly ToolOutput[];
  readonly omissions: readonly Omission[];
}

/** Returns the ledger entries that record a batch. */
export function elisionEntries(
  { batch, omissions }: Batch,
  place: ElisionPlace,
  moment: BatchMoment,
): readonly LedgerEntry[] {
  // A later output may have the same mark, so a batch also says up to which item its marks count.
  const before = batch.reduce((last, { item }) => Math.max(last, item), -1) + 1;
  const leftOut = {
    before,
    marks: [...batch.map(({ mark }) => mark), ...omissions.map(exchangeMark)],
  };
  const mark = elisionMark(place);
  const { at } = moment;
  return [
    ...(mark === undefined ? [] : [{ ...mark, at }]),
    ...batchPlaces(place, ANCHORS).flatMap(({ own, shared }) => [
      { ...own, leftOut, at },
      { ...shared, leftOut, at },
    ]),
    ...entriesAtUnsent({ batch, omissions, before }, place, moment),
  ];
}

/**
 * Returns the entries for a later request that ends before the items at which the batch itself is recorded. Such a
 * request must have a stub for each output from `firstUnsent` on, because these were never sent in full. So each of
 * these is recorded at its own item. Earlier outputs may have been sent in full, so they and all exchanges are recorded
 * at the first anchor from `firstUnsent` on.
 */
function entriesAtUnsent(
  { batch, omissions, before }: Batch & { readonly before: number },
  place: ElisionPlace,
  { at, firstUnsent }: BatchMoment,
): readonly LedgerEntry[] {
  const { view, owner, elision } = place;
  const { tenant, scope } = owner;
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
  const ends = new Set(batchPlaces(place, ANCHORS).map(({ at: index }) => index));
  return [...marks].flatMap(([index, noted]): LedgerEntry[] => {
    const { fingerprint } = items[index] ?? {};
    if (fingerprint === undefined || ends.has(index)) return [];
    // An output after the batch's last output may have the same mark, although it does not belong to the batch.
    const end = Math.min(index + 1, before);
    const leftOut = { before: end, marks: noted };
    return [{ kind: 'shared-batch', elision, tenant, scope, fingerprint, leftOut, at }];
  });
}

/** The index of an item at which a batch may be recorded, and the ledger addresses of such batches. */
export interface BatchPlace {
  readonly at: number;
  readonly own: AddressOf<'own-batch'>;
  readonly shared: AddressOf<'shared-batch'>;
}

/** Returns where batches of a conversation may be recorded, in the order of the items: the newest `count` places. */
export function batchPlaces(
  { view: { items }, owner, elision }: ElisionPlace,
  count = Infinity,
): readonly BatchPlace[] {
  const { tenant, scope, conversation } = owner;
  const places: BatchPlace[] = [];
  for (let at = items.length - 1; at >= 0 && places.length < count; at -= 1) {
    const item = items[at];
    if (item === undefined || !isAnchor(item)) continue;
    const { fingerprint } = item;
    places.push({
      at,
      own: { kind: 'own-batch', elision, tenant, conversation, fingerprint },
      shared: { kind: 'shared-batch', elision, tenant, scope, fingerprint },
    });
  }
  return places.toReversed();
}

/** Says whether an item is an anchor, at which a request can end: a user's message, or a tool's result. */
function isAnchor({ humanText, toolResultIds }: Item): boolean {
  return humanText !== '' || toolResultIds.length > 0;
}

/** Returns a name for one text of a batch, unique in its request: outputs with the same mark differ by their item. */
export function backMark(text: ToolOutput | Omission): string {
  return 'mark' in text ? `${text.mark}@${text.item}` : exchangeMark(text);
}

/** Returns the mark of an exchange, from its fingerprint. The mark of an output never begins with `~`. */
function exchangeMark({ fingerprint }: Omission): string {
  return `~${fingerprint.slice(0, DIGEST_CHARS)}`;
}
