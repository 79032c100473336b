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
 * Remembers batches, so that a text once left out stays left out: in the next request, after a restart, in a fork,
 * in a resumed session. A batch belongs to the conversation up to the item at which it was made. If the user goes
 * back before that item, the batch does not apply: before that item its texts were sent whole. If the client edited
 * its history, they were never sent whole. Then an output stays left out from its own item on, and an exchange from
 * the end of the next exchange on.
 */

// Items at which a batch is recorded: the newest, and the one before, in case the client rewrites its last message.
const ANCHORS = 2;
// Length of a mark: 72 bits, which no two outputs of a conversation share. The memory proves the text anyway.
const DIGEST_CHARS = 12;

/** A request, its owner, and whether texts are left out or only measured. */
export interface ElisionPlace {
  readonly view: RequestView;
  readonly owner: ConversationOwner & ScopeOwner;
  readonly elision: ElisionKind;
}

/**
 * Returns the address that says whether conversations with this beginning have batches. Most have none, so svc need
 * not look them up item by item. Undefined before the first item at which a batch can be made.
 */
export function elisionMark({ view, owner, elision }: ElisionPlace) {
  const first = view.items.find(isAnchor);
  if (first === undefined) return undefined;
  const { tenant, scope } = owner;
  const { fingerprint } = first;
  return { kind: 'batch-mark', elision, tenant, scope, fingerprint } as const;
}

/** Says whether texts may have been left out: there is an output, or more exchanges than are always kept. */
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
 * Returns the batches of this conversation: at each item the shared one, which was recorded first, and the
 * conversation's own. A conversation that left out more at this item had found the shared one.
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
 * Returns the outputs that these batches left out. Each mark is read once, and each output is looked up once,
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

export function repeatedOmissions(
  omissions: readonly Omission[],
  batches: readonly LeftOut[],
): ReadonlySet<Omission> {
  if (omissions.length === 0 || batches.length === 0) return new Set();
  const known = new Set(batches.flatMap(({ marks }) => marks));
  return new Set(omissions.filter((omission) => known.has(exchangeMark(omission))));
}

/** The item at which a batch is made, and the first item that was never sent before. */
export interface BatchMoment {
  readonly at: number;
  /** The result of firstUnsentItem(); also undefined if the ledger was not asked or did not know. */
  readonly firstUnsent?: number | undefined;
}

/** The outputs and exchanges that are left out for the first time. */
export interface Batch {
  readonly batch: readonly ToolOutput[];
  readonly omissions: readonly Omission[];
}

export function elisionEntries(
  { batch, omissions }: Batch,
  place: ElisionPlace,
  moment: BatchMoment,
): readonly LedgerEntry[] {
  // Outputs may be equal, and those after the last output of the batch do not belong to it.
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
 * Returns entries for items that no request has sent before, so that their outputs were never sent whole. If a later
 * request differs before the batch's own anchors, it shares only items with this request and must repeat its stubs.
 * So an output is recorded at its own item. An output before `firstUnsent` may have been sent whole, so it is
 * recorded at the next anchor. Exchanges are recorded there too: their marks say where they are left out.
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
    // New items may follow the batch's last output, and one of them may have the same text.
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

/** An item at which a batch may be recorded, and the addresses there. */
export interface BatchPlace {
  readonly at: number;
  readonly own: AddressOf<'own-batch'>;
  readonly shared: AddressOf<'shared-batch'>;
}

/** Returns the places of batches in a conversation, in order. `count`: only so many of the newest. */
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

/** Says whether a request can end at this item: a user's message or a tool's result, but no client's note. */
function isAnchor({ humanText, toolResultIds }: Item): boolean {
  return humanText !== '' || toolResultIds.length > 0;
}

/**
 * Returns a name for one text of a batch, unique in its request. Two outputs with the same mark differ by their item.
 */
export function backMark(text: ToolOutput | Omission): string {
  return 'mark' in text ? `${text.mark}@${text.item}` : exchangeMark(text);
}

/** Returns the mark of an exchange. No digest begins with `~`; a fingerprint names one place in one conversation. */
function exchangeMark({ fingerprint }: Omission): string {
  return `~${fingerprint.slice(0, DIGEST_CHARS)}`;
}
