import type {
  AddressOf,
  ConversationOwner,
  ElisionKind,
  EntryOf,
  LeftOut,
  LedgerAddress,
  LedgerEntry,
  SpaceOwner,
} from '../ledger/entries.ts';
import type { FoundEntries } from '../ledger/found-entries.ts';
import { KEPT_EXCHANGES, type Omission } from './omissions.ts';
import type { ToolOutput } from './outputs.ts';
import { NEWEST_FORM, STUB_FORMS, type StubForm } from './stubs.ts';
import type { Item, RequestView } from '../conversation/view.ts';
import type { Measure } from './window.ts';

/**
 * Remembers batches, so that a text once left out stays left out: in the next request, after a
 * restart, in a fork, in a resumed session. A batch belongs to the conversation up to the item at
 * which it was made. When the person goes back before that item, the request no longer holds it,
 * and the batch does not apply: what it left out was sent whole in front of that item. Where it never
 * was, because the client edited its history, an output stays left out from its own item on, and an
 * exchange from the next prompt on.
 */

// The conversation at the newest item; and at the one before, in case the client rewrites its last
// message in the next request.
const ANCHORS = 2;
// The request before this one ended at one of the last anchors. An assistant may call several tools
// at once, and each of their answers is an anchor.
const MEASURE_ANCHORS = 16;
const NEAR_ANCHORS = MEASURE_ANCHORS / 2;
// 72 random bits: two outputs of one conversation never share them, and the text is proven anyway.
const DIGEST_CHARS = 12;

/** A request, whose it is, and whether something is left out of it or only measured. */
export interface ElisionPlace {
  readonly view: RequestView;
  readonly owner: ConversationOwner;
  readonly elision: ElisionKind;
}

/**
 * The address that says whether conversations that begin like this one have batches at all. Most
 * have none, so svc need not look them up item by item. Undefined before the first anchor.
 */
export function elisionMark({ view, owner, elision }: ElisionPlace) {
  const first = view.items.find(isAnchor);
  if (first === undefined) return undefined;
  const { tenant, space } = owner;
  const { fingerprint } = first;
  return { kind: 'batch-mark', elision, tenant, space, fingerprint } as const;
}

/** Something may have left this request before: it has a tool output, or more exchanges than are kept. */
export function mayRepeat({ items }: RequestView): boolean {
  if ((items.at(-1)?.soFar.exchange.number ?? 0) >= KEPT_EXCHANGES) return true;
  return items.some(({ toolResultIds }) => toolResultIds.length > 0);
}

/** The addresses at which batches of this conversation may be known, from the item at `first` on. */
export function elisionAddresses(place: ElisionPlace, first = 0): readonly LedgerAddress[] {
  return batchPlaces(place, { first }).flatMap(({ own, shared }) => [own, shared]);
}

/** A batch, and the index of the item at which it was made. */
export interface FoundBatch {
  readonly at: number;
  readonly leftOut: LeftOut;
}

/**
 * The batches of this conversation, from the item at `first` on: at each item the shared one, which was
 * there first, and its own. A conversation that left out more at this item had found the shared one.
 */
export function batchesIn(
  found: FoundEntries,
  place: ElisionPlace,
  first = 0,
): readonly FoundBatch[] {
  return batchPlaces(place, { first }).flatMap(({ at, own, shared }) => {
    const [its, others] = [found.get(own)?.leftOut, found.get(shared)?.leftOut];
    if (its === undefined) return others === undefined ? [] : [{ at, leftOut: others }];
    const isBoth = others !== undefined && !isSameBatches([its], [others]);
    return (isBoth ? [others, its] : [its]).map((leftOut) => ({ at, leftOut }));
  });
}

export function isSameBatches(one: readonly LeftOut[], other: readonly LeftOut[]): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** All came back at some item of this conversation, so that the client sees its true size. */
export function isWholeAgain(batches: readonly LeftOut[]): boolean {
  return batches.includes('nothing');
}

/**
 * The outputs that these batches left out, with the form of their stubs. Each mark is read once, and
 * each output is looked up once, however many batches there are.
 */
export function repeatedOutputs(
  outputs: readonly ToolOutput[],
  batches: readonly LeftOut[],
): ReadonlyMap<ToolOutput, StubForm> {
  const marked = marksOf(batches);
  const repeated = new Map<ToolOutput, StubForm>();
  for (const output of outputs) {
    const ends = marked.get(output.mark);
    if (ends === undefined) continue;
    // Left out twice, the first words count: those of the older form.
    const form = STUB_FORMS.find((known) => output.item < (ends[known] ?? 0));
    if (form !== undefined) repeated.set(output, form);
  }
  return repeated;
}

/** By form: the item before which the outputs with a mark were left out. */
type BatchEnds = Partial<Record<StubForm, number>>;

// The requests of a conversation bring the very same list of batches until there is a new one.
const MARKS = new WeakMap<readonly LeftOut[], ReadonlyMap<string, BatchEnds>>();

function marksOf(batches: readonly LeftOut[]): ReadonlyMap<string, BatchEnds> {
  const known = MARKS.get(batches);
  if (known !== undefined) return known;
  const marked = new Map<string, BatchEnds>();
  for (const batch of batches) {
    if (batch === 'nothing') continue;
    const form = knownForm(batch.stubForm);
    for (const mark of batch.marks) {
      const ends = marked.get(mark) ?? {};
      marked.set(mark, { ...ends, [form]: Math.max(ends[form] ?? 0, batch.before) });
    }
  }
  MARKS.set(batches, marked);
  return marked;
}

/** A later release may have written a form that this one does not know. */
function knownForm(form: number): StubForm {
  return form === 1 ? 1 : NEWEST_FORM;
}

/** The exchanges that these batches left out. */
export function repeatedOmissions(
  omissions: readonly Omission[],
  batches: readonly LeftOut[],
): ReadonlySet<Omission> {
  if (omissions.length === 0 || batches.length === 0) return new Set();
  const known = new Set(batches.flatMap((batch) => (batch === 'nothing' ? [] : batch.marks)));
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
    ...entriesAtEnd({ before, stubForm: NEWEST_FORM, marks }, place, at),
    ...entriesAtUnsent({ batch, omissions, before }, place, moment),
  ];
}

/**
 * No request sent the items from `firstUnsent` on before, so none sent their outputs whole. Where the
 * next request goes another way in front of the batch's own anchors, it shares items with this request
 * alone, and repeats what was left out of them. So each text is noted where the forwarded items show
 * that it is out: an output at its own item, which has the stub, and an exchange at the prompt behind
 * it. A request that asks something else there has the exchange among the two newest, which are always
 * kept, and continues with it. A text in front of `firstUnsent` may have gone whole: it is noted at the first
 * anchor behind.
 */
function entriesAtUnsent(
  { batch, omissions, before }: Batch & { readonly before: number },
  { view, owner: { tenant, space }, elision }: ElisionPlace,
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
  const indexes = new Map(
    omissions.length === 0 ? [] : items.map((item, index) => [item.start, index]),
  );
  for (const omission of omissions) {
    note(indexes.get(omission.span.end) ?? start, exchangeMark(omission));
  }
  const ends = new Set(anchorsOf(view, { count: ANCHORS }).map(({ at: index }) => index));
  return [...marks].flatMap(([index, noted]): LedgerEntry[] => {
    const { fingerprint } = items[index] ?? {};
    if (fingerprint === undefined || ends.has(index)) return [];
    // New items may follow the last output of the batch, and one of them may have its words.
    const end = Math.min(index + 1, before);
    const leftOut = { before: end, stubForm: NEWEST_FORM, marks: noted };
    return [{ kind: 'shared-batch', elision, tenant, space, fingerprint, leftOut, at }];
  });
}

/** The ledger entries of the request in which everything left out came back. */
export function wholeEntries(place: ElisionPlace, at: number): readonly LedgerEntry[] {
  return entriesAtEnd('nothing', place, at);
}

function entriesAtEnd(leftOut: LeftOut, place: ElisionPlace, at: number): readonly LedgerEntry[] {
  return batchPlaces(place, { count: ANCHORS }).flatMap(({ own, shared }) => [
    { ...own, leftOut, at },
    { ...shared, leftOut, at },
  ]);
}

function batchPlaces({ view, owner, elision }: ElisionPlace, range: AnchorRange) {
  const { tenant, space, conversation } = owner;
  return anchorsOf(view, range).map(({ at, fingerprint }) => ({
    at,
    own: { kind: 'own-batch', elision, tenant, space, conversation, fingerprint } as const,
    shared: { kind: 'shared-batch', elision, tenant, space, fingerprint } as const,
  }));
}

/** The addresses of the provider's counts of earlier requests, the newest last. */
export function measureAddresses(
  view: RequestView,
  owner: SpaceOwner,
): readonly AddressOf<'provider-count'>[] {
  return anchorsOf(view, { count: MEASURE_ANCHORS }).map(({ fingerprint }) =>
    measureAddress(fingerprint, owner),
  );
}

/**
 * Whether a request that ended at the item with this fingerprint is one of the last: a count of it is
 * found for some more requests.
 */
export function isNearAnchor(view: RequestView, fingerprint: string): boolean {
  const anchors = anchorsOf(view, { count: NEAR_ANCHORS });
  return anchors.some((anchor) => anchor.fingerprint === fingerprint);
}

/** The ledger entries of the provider's token count of a request. */
export function measureEntries(
  { counted, estimated }: Measure,
  { view, owner }: Omit<ElisionPlace, 'elision'>,
  at: number,
): readonly EntryOf<'provider-count'>[] {
  return anchorsOf(view, { count: 1 }).map(({ fingerprint }) => ({
    ...measureAddress(fingerprint, owner),
    counted,
    estimated,
    at,
  }));
}

/** The newest count that the ledger knows. */
export function measureOf(
  addresses: readonly AddressOf<'provider-count'>[],
  found: FoundEntries,
): Measure | undefined {
  const newest = addresses.findLast((address) => found.has(address));
  return newest === undefined ? undefined : found.get(newest);
}

function measureAddress(
  fingerprint: string,
  { tenant, space }: SpaceOwner,
): AddressOf<'provider-count'> {
  return { kind: 'provider-count', tenant, space, fingerprint };
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
  return anchorsOf(view, { count: 1 })[0]?.at;
}

interface AnchorRange {
  readonly first?: number;
  readonly count?: number;
}

/** The last `count` of them, in their order, none before the item at `first`. */
function anchorsOf(
  { items }: RequestView,
  { first = 0, count = Infinity }: AnchorRange,
): readonly Anchor[] {
  const anchors: Anchor[] = [];
  for (let at = items.length - 1; at >= first && anchors.length < count; at -= 1) {
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
