import type {
  CaptureBatch,
  CaptureOutcome,
  ObjectState,
  SpaceState,
  NewObject,
} from '../../ports/service-store.ts';
import {
  passagesOf,
  type IndexedPassage,
  shareOf,
} from '../../../../src/adapters/store/passage-index.ts';
import type { Rows, SqlValue } from '../../ports/rows.ts';
import { bareState, Spaces, stateOf, type StateRow } from '../memory/spaces.ts';
import { INDEX } from './statements/index.ts';
import { referenceOf } from '../../../../src/core/memory/reference.ts';
import { POSITIONS_PER_EXCHANGE, SPACES_MAX } from '../../../../src/adapters/store/schema.ts';
import type { TenantTermKeys } from './term-keys.ts';
import { bytesArray } from './wire-values.ts';

/**
 * Takes a batch of records in. The row of the space is locked, so batches of one space come one after
 * the other, and their sequence is the order of their commits. A batch is two messages
 * and a commit, however many records it has.
 */

export async function capture(
  rows: Rows,
  place: CapturePlace,
  batch: CaptureBatch,
): Promise<CaptureOutcome> {
  const spaces = new Spaces(rows, place.tenant);
  // Its row is locked first, so no other transaction changes the rows that the statement behind it reads.
  const lock = () =>
    Promise.all([
      lockSpace(rows, place.tenant, batch.space),
      readKnown(rows, place.tenant, batch),
      place.ignoresPlan === true ? Infinity : spaces.room(),
    ]);
  // It takes this process about as long to find the words as the server to answer.
  let [[space, held, room], passages] = await Promise.all([
    lock(),
    meanwhile(() => passagesIn(batch)),
  ]);
  if (space === undefined) {
    const state = bareState(await spaces.state(batch.space));
    if (isStale(batch, state)) return { state, results: undefined };
    await makeSpace(rows, place.tenant, batch.space);
    // Another node may have made it a moment ago, and filled it.
    [space, held, room] = await lock();
    if (space === undefined) {
      return { state, results: batch.objects.map((): ObjectState => 'quota') };
    }
  }
  const state = stateOf(batch.space, space);
  if (isStale(batch, state)) return { state, results: undefined };
  const writer = new BatchWriter(rows, place, space);
  const results = writer.take(batch, { passages, held, room });
  await Promise.all(writer.write(batch.now));
  const { records } = writer;
  const commitSeq = state.commitSeq + records;
  const after = { ...state, commitSeq, records: state.records + records };
  return { state: after, results };
}

function passagesIn({ objects }: CaptureBatch): BatchPassages {
  return objects.map(({ texts }) => texts.map(({ text, role }) => passagesOf(text, role)));
}

/** A purge came in between: the batch belongs to the generation before it. */
function isStale({ ifGeneration }: CaptureBatch, { generation }: SpaceState): boolean {
  return ifGeneration !== undefined && ifGeneration !== generation;
}

/** Runs `work` in the next tick, so that the statements queued in this one reach the server first. */
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

/** Locked, and made where there is none; undefined when the tenant has too many. */
export async function makeSpace(
  rows: Rows,
  tenant: string,
  space: string,
): Promise<LockedSpace | undefined> {
  // Two nodes may give two spaces the same number: then one of them finds its row missing.
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- The next look follows what was made.
    const found = await lockSpace(rows, tenant, space);
    if (found !== undefined) return found;
    // oxlint-disable-next-line no-await-in-loop
    const made = await rows.run(INDEX.makeSpace, tenant, space, SPACES_MAX - 1);
    // oxlint-disable-next-line no-await-in-loop
    const held = made > 0 ? [] : await new Spaces(rows, tenant).chosen({ globs: undefined });
    if (held.length >= SPACES_MAX - 1) return undefined;
  }
}

function readKnown(
  rows: Rows,
  tenant: string,
  { space, objects }: CaptureBatch,
): Promise<KnownRow[]> {
  return rows.all<KnownRow>(
    INDEX.known,
    tenant,
    space,
    objects.map(({ digest }) => digest),
    objects.map(({ ref }) => ref),
    objects.flatMap(({ textDigest }) => textDigest ?? []),
    objects.map(threadOf),
  );
}

/** Decides what becomes of each record of a batch, and writes the rows of all of them in one message. */

/** By object, by text. */
type BatchPassages = readonly (readonly (readonly IndexedPassage[])[])[];

interface CapturePlace {
  readonly tenant: string;
  readonly keys: TenantTermKeys;
  /** Canonical bytes that one space may hold. */
  readonly bytesMax: number;
  /** The records of another service come in, whatever the plan allows. */
  readonly ignoresPlan?: true;
}

/** A part of a batch that the space holds already. */
interface KnownRow {
  readonly what: string;
  readonly name: string;
  readonly id: number;
}

interface KnownFacts {
  readonly passages: BatchPassages;
  readonly held: readonly KnownRow[];
  /** Records that the plan still allows. */
  readonly room: number;
}

interface NewRecord {
  readonly object: NewObject;
  readonly seq: number;
  readonly passages: readonly (readonly IndexedPassage[])[];
}

interface NewText {
  readonly n: number;
  readonly recordDigest: string;
  readonly message: number;
  readonly digest: string;
  readonly ref: string;
  readonly object: NewObject;
  readonly role: string;
  readonly conversation: number;
}

interface NewPassage {
  readonly n: number;
  readonly text: number;
  readonly conversation: number;
  readonly position: number;
  readonly start: number;
  readonly end: number;
  readonly terms: readonly string[];
}

class BatchWriter {
  readonly #rows: Rows;
  readonly #place: CapturePlace;
  readonly #space: LockedSpace;
  readonly #purged = new Set<string>();
  readonly #digests = new Set<string>();
  readonly #refs = new Set<string>();
  readonly #textDigests = new Set<string>();
  readonly #conversations = new Map<string, number>();
  readonly #newConversations: { id: number; key: string }[] = [];
  readonly #records: NewRecord[] = [];
  readonly #texts: NewText[] = [];
  readonly #passages: NewPassage[] = [];
  readonly #again: NewObject[] = [];
  #bytes = 0;
  #room = Infinity;

  constructor(rows: Rows, place: CapturePlace, space: LockedSpace) {
    this.#rows = rows;
    this.#place = place;
    this.#space = space;
  }

  /** How many were added. */
  get records(): number {
    return this.#records.length;
  }

  /** Decides what becomes of each object. */
  take({ objects }: CaptureBatch, { passages, held, room }: KnownFacts): ObjectState[] {
    this.#room = room;
    const sets: Record<string, Set<string>> = {
      purged: this.#purged,
      record: this.#digests,
      ref: this.#refs,
      text: this.#textDigests,
    };
    for (const { what, name, id } of held) {
      if (what === 'conversation') this.#conversations.set(name, id);
      else sets[what]?.add(name);
    }
    return objects.map((object, at) => this.#take(object, passages[at] ?? []));
  }

  /** All in one message: a statement finds what those before it have added. */
  write(now: number): Promise<number>[] {
    const added =
      this.#records.length === 0
        ? []
        : [this.#addSources(), this.#addRecords(now), ...this.#addTexts(), this.#grow()];
    return [...added, ...this.#sayAgain()];
  }

  #take(object: NewObject, passages: NewRecord['passages']): ObjectState {
    const { digest, ref, bytes } = object;
    if (this.#purged.has(digest)) return 'purged';
    if (this.#digests.has(digest)) {
      this.#again.push(object);
      return 'duplicate';
    }
    if (this.#refs.has(ref)) return 'ref_collision';
    if (this.#records.length >= this.#room) return 'plan';
    if (this.#space.bytes + this.#bytes + bytes.length > this.#place.bytesMax) return 'quota';
    this.#digests.add(digest);
    this.#refs.add(ref);
    this.#bytes += bytes.length;
    const seq = this.#space.seq + this.#records.length + 1;
    this.#records.push({ object, seq, passages });
    for (const [message, { role }] of object.texts.entries()) {
      this.#takeText(object, { message, role, passages: passages[message] ?? [] });
    }
    return 'durable';
  }

  #takeText(
    object: NewObject,
    text: {
      readonly message: number;
      readonly role: 'user' | 'assistant';
      readonly passages: readonly IndexedPassage[];
    },
  ): void {
    const { message, role } = text;
    const conversation = this.#conversationOf(threadOf(object));
    const n = this.#space.next_text + this.#texts.length;
    const name = this.#nameOf(object, message);
    this.#texts.push({
      n,
      recordDigest: object.digest,
      message,
      ...name,
      object,
      role,
      conversation,
    });
    const source = object.source === undefined ? {} : { source: object.source };
    const first = (object.position + shareOf({ role, ...source })) * POSITIONS_PER_EXCHANGE;
    for (const [count, { start, end, terms }] of text.passages.entries()) {
      this.#passages.push({
        n: this.#space.next_passage + this.#passages.length,
        text: n,
        conversation,
        position: first + count,
        start,
        end,
        terms,
      });
    }
  }

  /** The same words may be in two records (a note, a longer exchange): the name is the first's. */
  #nameOf({ digest, ref, textDigest }: NewObject, message: number) {
    if (textDigest === undefined) return { digest: `${digest}#${message}`, ref };
    const isTaken = this.#textDigests.has(textDigest);
    this.#textDigests.add(textDigest);
    return { digest: isTaken ? `${digest}#${message}` : textDigest, ref: referenceOf(textDigest) };
  }

  #conversationOf(key: string): number {
    const known = this.#conversations.get(key);
    if (known !== undefined) return known;
    const id = this.#space.next_conversation + this.#newConversations.length;
    this.#conversations.set(key, id);
    this.#newConversations.push({ id, key });
    return id;
  }

  /** By session and client. */
  #addSources(): Promise<number> {
    const sums = sourcesOf(this.#records.map(({ object }) => object));
    return this.#run(
      INDEX.addSources,
      sums.map(({ session }) => session),
      sums.map(({ client }) => client),
      sums.map(({ firstSeen }) => firstSeen),
      sums.map(({ lastSeen }) => lastSeen),
      sums.map(({ records }) => records),
      sums.map(({ bytes }) => bytes),
    );
  }

  #addRecords(now: number): Promise<number> {
    const of = <T>(read: (object: NewObject) => T): T[] =>
      this.#records.map(({ object }) => read(object));
    return this.#run(
      INDEX.addRecords,
      now,
      of(({ digest }) => digest),
      of(({ ref }) => ref),
      of(({ kind }) => kind),
      of(({ textDigest }) => textDigest ?? null),
      of(({ textDigest }) => (textDigest === undefined ? null : referenceOf(textDigest))),
      of(({ session }) => session),
      of(({ client }) => client),
      of(({ observedAt }) => observedAt),
      of(({ position }) => position),
      of(({ fingerprint }) => fingerprint),
      of(({ branch }) => branch ?? null),
      of(({ dialect }) => dialect ?? null),
      of(({ toolName }) => toolName ?? null),
      of(({ redactions }) => redactions),
      this.#records.map(({ seq }) => seq),
      bytesArray(of(({ bytes }) => bytes)),
    );
  }

  #addTexts(): Promise<number>[] {
    const [texts, passages, conversations] = [this.#texts, this.#passages, this.#newConversations];
    const added: Promise<number>[] = [];
    if (conversations.length > 0) {
      added.push(
        this.#run(
          INDEX.addConversations,
          conversations.map(({ id }) => id),
          conversations.map(({ key }) => key),
        ),
      );
    }
    if (texts.length === 0) return added;
    return [
      ...added,
      this.#run(
        INDEX.addTexts,
        texts.map(({ n }) => n),
        texts.map(({ recordDigest }) => recordDigest),
        texts.map(({ message }) => message),
        texts.map(({ digest }) => digest),
        texts.map(({ ref }) => ref),
        texts.map(({ role }) => role),
        texts.map(({ object }) => object.session),
        texts.map(({ conversation }) => conversation),
        texts.map(({ object }) => object.observedAt),
        texts.map(({ object }) => object.branch ?? null),
        texts.map(({ object }) => object.source ?? null),
      ),
      this.#run(
        INDEX.addPassages,
        passages.map(({ n }) => n),
        passages.map(({ text }) => text),
        passages.map(({ conversation }) => conversation),
        passages.map(({ position }) => position),
        passages.map(({ start }) => start),
        passages.map(({ end }) => end),
        passages.map(({ terms }) => terms.length),
        this.#place.keys.arrayOf(
          this.#space.id,
          passages.map(({ terms }) => terms),
        ),
      ),
    ];
  }

  #grow(): Promise<number> {
    return this.#run(
      INDEX.growSpace,
      this.#records.length,
      this.#bytes,
      this.#passages.length,
      this.#passages.reduce((sum, { terms }) => sum + terms.length, 0),
      this.#texts.length,
      this.#newConversations.length,
    );
  }

  /** As sayAgain of the file's tables, after the rows of this batch are there. */
  #sayAgain(): Promise<number>[] {
    const said: Promise<number>[] = [];
    const again = this.#again.filter(({ textDigest }) => textDigest !== undefined);
    const timed = again.filter(({ isTimed }) => isTimed === true);
    if (timed.length > 0) {
      const times = timed.map(({ observedAt }) => observedAt);
      const texts = newest(
        timed.map(({ textDigest = '' }) => textDigest),
        times,
      );
      const records = newest(
        timed.map(({ digest }) => digest),
        times,
      );
      said.push(
        this.#run(INDEX.renewTexts, texts.digests, texts.times),
        this.#run(INDEX.renewRecords, records.digests, records.times),
      );
    }
    const verified = again.flatMap(({ source, textDigest }) =>
      source === undefined ? (textDigest ?? []) : [],
    );
    if (verified.length > 0) said.push(this.#run(INDEX.verifyTexts, verified));
    return said;
  }

  #run(statement: string, ...values: SqlValue[]): Promise<number> {
    return this.#rows.run(statement, this.#place.tenant, this.#space.id, ...values);
  }
}

/** A text of no conversation has no neighbours: its digest is a conversation of its own. */
function threadOf({ session, digest }: NewObject): string {
  return session === '' ? digest : session;
}

/** Each digest once, with its latest time. */
function newest(digests: readonly string[], times: readonly number[]) {
  const latest = new Map<string, number>();
  for (const [at, digest] of digests.entries()) {
    latest.set(digest, Math.max(latest.get(digest) ?? -Infinity, times[at] ?? -Infinity));
  }
  return { digests: [...latest.keys()], times: [...latest.values()] };
}

/** Where the records of a batch come from. */

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

/** By session and client. */
function sourcesOf(objects: readonly NewObject[]): SourceSum[] {
  const sources = new Map<string, SourceSum>();
  for (const object of objects) {
    const key = sourceKey(object);
    sources.set(key, addedTo(sources.get(key), object));
  }
  return [...sources.values()];
}
