import { referenceOf } from '../../../../src/core/memory/reference.ts';
import { type IndexedPassage, shareOf } from '../../../../src/adapters/store/passage-index.ts';
import { POSITIONS_PER_EXCHANGE, SPACES_MAX } from '../../../../src/adapters/store/schema.ts';
import type { Rows, SqlValue } from '../../ports/rows.ts';
import type {
  CaptureBatch,
  CaptureOutcome,
  NewObject,
  ObjectState,
} from '../../ports/service-store.ts';
import {
  CapturePlan,
  isStale,
  type KnownRow,
  namesIn,
  passagesIn,
  threadOf,
} from '../memory/capture-plan.ts';
import { Spaces, stateOf, type StateRow } from '../memory/spaces.ts';
import { INDEX } from './statements/index.ts';
import type { TenantTermKeys } from './term-keys.ts';
import { bytesArray, columnsOf } from './wire-values.ts';

/**
 * Captures a batch of records. The space's row is locked, so batches of a space run one after the other, and the commit
 * sequence `seq` follows the order of their commits. In an existing space a batch takes two messages and a commit,
 * whatever its size.
 */

export async function capture(
  rows: Rows,
  place: CapturePlace,
  batch: CaptureBatch,
): Promise<CaptureOutcome> {
  const spaces = new Spaces(rows, place.tenant);
  // The first statement locks the space's row, so no other transaction changes the rows that the next statement reads.
  const lock = () =>
    Promise.all([
      lockSpace(rows, place.tenant, batch.space),
      readKnown(rows, place.tenant, batch),
      place.ignoresPlan === true ? Infinity : spaces.room(),
    ]);
  // Cutting the texts into passages takes about as long as the server's answer, so both run at the same time.
  let [[space, held, room], passages] = await Promise.all([
    lock(),
    meanwhile(() => passagesIn(batch)),
  ]);
  if (space === undefined) {
    const state = await spaces.state(batch.space);
    if (isStale(batch, state)) return { state, results: undefined };
    await makeSpace(rows, place.tenant, batch.space);
    // Another node may have created and filled the space a moment ago, so read it like an existing one.
    [space, held, room] = await lock();
    if (space === undefined) {
      return { state, results: batch.objects.map((): ObjectState => 'quota') };
    }
  }
  const state = stateOf(batch.space, space);
  if (isStale(batch, state)) return { state, results: undefined };
  const plan = new CapturePlan(batch, {
    passages,
    held,
    room,
    seq: space.seq,
    bytesLeft: place.bytesMax - space.bytes,
  });
  await Promise.all(writeBatch(rows, place, { space, plan, held }, batch.now));
  const added = plan.records.length;
  const after = { ...state, commit_seq: state.commit_seq + added, records: state.records + added };
  return { state: after, results: plan.results };
}

/** Runs `work` in the next tick, after the statements that were queued before are sent. */
export async function meanwhile<T>(work: () => T): Promise<T> {
  await new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });
  return work();
}

/** A space whose row this transaction has locked, so no other capture or purge runs in it. */
interface LockedSpace extends StateRow {
  readonly id: number;
  readonly counter: number;
  readonly seq: number;
  readonly records: number;
  readonly bytes: number;
  readonly next_passage: number;
  readonly next_text: number;
  readonly next_conversation: number;
}

function lockSpace(rows: Rows, tenant: string, space: string): Promise<LockedSpace | undefined> {
  return rows.get<LockedSpace>(INDEX.lockSpace, tenant, space);
}

/** Locks the space, and creates it if it is missing. Undefined if the tenant has too many spaces. */
export async function makeSpace(
  rows: Rows,
  tenant: string,
  space: string,
): Promise<LockedSpace | undefined> {
  // Two nodes may choose the same number for two spaces. Then one of the nodes adds no row, and tries again.
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- The next attempt depends on this one.
    const found = await lockSpace(rows, tenant, space);
    if (found !== undefined) return found;
    // oxlint-disable-next-line no-await-in-loop
    const made = await rows.run(INDEX.makeSpace, tenant, space, SPACES_MAX - 1);
    // oxlint-disable-next-line no-await-in-loop
    const held = made > 0 ? [] : await new Spaces(rows, tenant).chosen({ globs: undefined });
    if (held.length >= SPACES_MAX - 1) return undefined;
  }
}

/** A known row, or a conversation of the space: `what` is 'conversation', and `id` its number. */
interface HeldRow extends KnownRow {
  readonly id: number;
}

function readKnown(rows: Rows, tenant: string, batch: CaptureBatch): Promise<HeldRow[]> {
  const threads = batch.objects.map(threadOf);
  return rows.all<HeldRow>(INDEX.known, tenant, ...namesIn(batch), threads);
}

interface CapturePlace {
  readonly tenant: string;
  readonly keys: TenantTermKeys;
  readonly bytesMax: number;
  /** True: store the records even above the plan's limit, because they are moved from another service. */
  readonly ignoresPlan?: true;
}

/** The members of a passage, in the order of the values $3 to $9 of `INDEX.addPassages`. */
const PASSAGE_COLUMNS = ['n', 'text', 'conversation', 'position', 'start', 'end', 'words'] as const;

interface NewPassage extends IndexedPassage {
  readonly text: number;
  readonly conversation: number;
  readonly position: number;
}

interface Planned {
  readonly space: LockedSpace;
  readonly plan: CapturePlan;
  readonly held: readonly HeldRow[];
}

type Run = (statement: string, ...values: SqlValue[]) => Promise<number>;

/** Sends the statements of a batch. Each statement sees the rows that earlier ones added. */
function writeBatch(
  rows: Rows,
  place: CapturePlace,
  planned: Planned,
  now: number,
): Promise<number>[] {
  const { space, plan } = planned;
  const run: Run = (statement, ...values) => rows.run(statement, place.tenant, space.id, ...values);
  const added =
    plan.records.length === 0
      ? []
      : [addSources(run, plan), addRecords(run, plan, now), ...addTexts(run, place.keys, planned)];
  return [...added, ...sayAgain(run, plan)];
}

/** Adds the batch's sums to its sources. A source is a session together with the client program. */
function addSources(run: Run, { records }: CapturePlan): Promise<number> {
  const sums = sourcesOf(records.map(({ object }) => object));
  const names = ['session', 'client', 'firstSeen', 'lastSeen', 'records', 'bytes'] as const;
  return run(INDEX.addSources, ...columnsOf(sums, names));
}

function addRecords(run: Run, { records }: CapturePlan, now: number): Promise<number> {
  const rows = records.map(({ object, seq }) => {
    const { textDigest } = object;
    return { ...object, seq, textRef: textDigest && referenceOf(textDigest) };
  });
  return run(
    INDEX.addRecords,
    now,
    ...columnsOf(rows, ['digest', 'ref', 'kind', 'textDigest', 'textRef']),
    ...columnsOf(rows, ['session', 'client', 'observedAt', 'position', 'fingerprint']),
    ...columnsOf(rows, ['branch', 'dialect', 'toolName', 'redactions', 'seq']),
    bytesArray(rows.map(({ bytes }) => bytes)),
  );
}

function addTexts(run: Run, keys: TenantTermKeys, { space, plan, held }: Planned) {
  const spoken = plan.records.filter((record) => record.texts.length > 0);
  const known = held.filter(({ what }) => what === 'conversation');
  const ids = new Map(known.map(({ name, id }) => [name, id]));
  const fresh = new Set(
    spoken.map(({ object }) => threadOf(object)).filter((key) => !ids.has(key)),
  );
  const conversations = [...fresh].map((key, at) => ({ id: space.next_conversation + at, key }));
  for (const { id, key } of conversations) ids.set(key, id);
  const texts = spoken.flatMap(({ object, texts: own }) => {
    const conversation = ids.get(threadOf(object)) ?? 0;
    return own.map((text) => ({ ...text, object, conversation }));
  });
  const passages = texts
    .flatMap((text, at) => passagesOf(text, space.next_text + at))
    .map((one, at) => ({ ...one, n: space.next_passage + at, words: one.terms.length }));
  const terms = passages.map((passage) => passage.terms);
  const grown = run(
    INDEX.growSpace,
    plan.records.length,
    plan.bytes,
    passages.length,
    passages.reduce((sum, { words }) => sum + words, 0),
    texts.length,
    conversations.length,
  );
  if (texts.length === 0) return [grown];
  const rows = texts.map((text, at) => {
    return { ...text.object, ...text, n: space.next_text + at, record: text.object.digest };
  });
  return [
    grown,
    run(INDEX.addConversations, ...columnsOf(conversations, ['id', 'key'])),
    run(
      INDEX.addTexts,
      ...columnsOf(rows, ['n', 'record', 'message', 'digest', 'ref', 'role', 'session']),
      ...columnsOf(rows, ['conversation', 'observedAt', 'branch', 'source', 'lastFrom']),
    ),
    run(INDEX.addPassages, ...columnsOf(passages, PASSAGE_COLUMNS), keys.arrayOf(space.id, terms)),
  ];
}

/**
 * Updates records of one text that the batch repeats: sets a newer time, and marks a text as verified if it is verified
 * in the batch. On SQLite, sayAgain() of src/adapters/store/records.ts does the same.
 */
function sayAgain(run: Run, { again }: CapturePlan): Promise<number>[] {
  const timed = again.filter(({ isTimed }) => isTimed === true);
  const verified = again.filter(({ source }) => source === undefined);
  const said: Promise<number>[] = [];
  if (timed.length > 0) {
    const texts = newest(timed, ({ textDigest = '' }) => textDigest);
    const records = newest(timed, ({ digest }) => digest);
    said.push(
      run(INDEX.renewTexts, [...texts.keys()], [...texts.values()]),
      run(INDEX.renewRecords, [...records.keys()], [...records.values()]),
    );
  }
  if (verified.length > 0) {
    const digests = verified.flatMap(({ textDigest }) => textDigest ?? []);
    said.push(run(INDEX.verifyTexts, digests));
  }
  return said;
}

interface PlacedText {
  readonly object: NewObject;
  readonly role: 'user' | 'assistant';
  readonly conversation: number;
  readonly passages: readonly IndexedPassage[];
}

/** Returns the passages of the text with number `n`, and the position of each in the conversation. */
function passagesOf({ object, role, conversation, passages }: PlacedText, n: number): NewPassage[] {
  const source = object.source === undefined ? {} : { source: object.source };
  const first = (object.position + shareOf({ role, ...source })) * POSITIONS_PER_EXCHANGE;
  return passages.map((one, at) => ({ ...one, text: n, conversation, position: first + at }));
}

/** Returns the latest time of each digest. */
function newest(objects: readonly NewObject[], digestOf: (object: NewObject) => string) {
  const latest = new Map<string, number>();
  for (const object of objects) {
    const digest = digestOf(object);
    latest.set(digest, Math.max(latest.get(digest) ?? -Infinity, object.observedAt));
  }
  return latest;
}

/** Sums over the records of a batch that came from one session and client. */
interface SourceSum {
  readonly session: string;
  readonly client: string;
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly records: number;
  readonly bytes: number;
}

function addedTo(sum: SourceSum | undefined, object: NewObject): SourceSum {
  const { session, client, observedAt: at, bytes } = object;
  return {
    session,
    client,
    firstSeen: Math.min(sum?.firstSeen ?? at, at),
    lastSeen: Math.max(sum?.lastSeen ?? at, at),
    records: (sum?.records ?? 0) + 1,
    bytes: (sum?.bytes ?? 0) + bytes.length,
  };
}

function sourceKey({ session, client }: Pick<NewObject, 'session' | 'client'>): string {
  return JSON.stringify([session, client].map((one) => one.replaceAll('\0', '�')));
}

function sourcesOf(objects: readonly NewObject[]): SourceSum[] {
  const sources = new Map<string, SourceSum>();
  for (const object of objects) {
    const key = sourceKey(object);
    sources.set(key, addedTo(sources.get(key), object));
  }
  return [...sources.values()];
}
