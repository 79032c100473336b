import { referenceOf } from '../../../../src/core/memory/reference.ts';
import { type IndexedPassage, passagesOf } from '../../../../src/adapters/store/passage-index.ts';
import type {
  CaptureBatch,
  NewObject,
  ObjectState,
  SpaceState,
} from '../../ports/service-store.ts';

/** Decides for each record of a batch whether to store it. SQLite and PostgreSQL then write what the plan lists. */

/** For each record of a batch, and for each text of the record: the passages of the text. */
type BatchPassages = readonly (readonly (readonly IndexedPassage[])[])[];

/** Cuts the texts of a batch into passages. It needs no lock, so it may run before the transaction. */
export function passagesIn({ objects }: CaptureBatch): BatchPassages {
  return objects.map(({ texts }) => texts.map(({ text, role }) => passagesOf(text, role)));
}

/**
 * Says whether a purge or a restore has changed the generation of the space since the client made the batch. False for
 * a batch that states no generation.
 */
export function isStale({ ifGeneration }: CaptureBatch, { generation }: SpaceState): boolean {
  return ifGeneration !== undefined && ifGeneration !== generation;
}

/** Returns the values for the statement `MEMORY.known`, except its first, the tenant. */
export function namesIn({ space, objects }: CaptureBatch) {
  return [
    space,
    objects.map(({ digest }) => digest),
    objects.map(({ ref }) => ref),
    objects.flatMap(({ textDigest }) => textDigest ?? []),
  ] as const;
}

/** A digest or reference in the batch that the space has or has purged. `what`: 'purged', 'record', 'ref' or 'text'. */
export interface KnownRow {
  readonly what: string;
  readonly name: string;
}

interface PlanFacts {
  readonly passages: BatchPassages;
  readonly held: readonly KnownRow[];
  /** The last commit sequence of the space. */
  readonly seq: number;
  /** The number of records that the tenant's plan still allows. */
  readonly room: number;
  /** The number of canonical bytes by which the space may still grow. */
  readonly bytesLeft: number;
}

interface NewText {
  readonly message: number;
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly digest: string;
  readonly ref: string;
  readonly passages: readonly IndexedPassage[];
}

interface NewRecord {
  readonly object: NewObject;
  readonly seq: number;
  readonly texts: readonly NewText[];
}

export class CapturePlan {
  readonly results: readonly ObjectState[];
  readonly records: NewRecord[] = [];
  /**
   * Records of one text that the space or the batch already has. The batch may give them a newer time, or show them
   * verified.
   */
  readonly again: NewObject[] = [];
  /** Canonical bytes of the new records. */
  bytes = 0;
  readonly #facts: PlanFacts;
  readonly #known: ReadonlyMap<string, Set<string>>;

  constructor({ objects }: CaptureBatch, facts: PlanFacts) {
    this.#facts = facts;
    const kinds = ['purged', 'record', 'ref', 'text'].map((what) => {
      const names = facts.held.filter((row) => row.what === what).map(({ name }) => name);
      return [what, new Set(names)] as const;
    });
    this.#known = new Map(kinds);
    this.results = objects.map((object, at) => this.#take(object, facts.passages[at] ?? []));
  }

  #take(object: NewObject, passages: BatchPassages[number]): ObjectState {
    const { digest, ref, bytes } = object;
    const { seq, room, bytesLeft } = this.#facts;
    if (this.#isKnown('purged', digest)) return 'purged';
    if (this.#isKnown('record', digest)) {
      if (object.textDigest !== undefined) this.again.push(object);
      return 'duplicate';
    }
    if (this.#isKnown('ref', ref)) return 'ref_collision';
    if (this.records.length >= room) return 'plan';
    if (this.bytes + bytes.length > bytesLeft) return 'quota';
    this.#known.get('record')?.add(digest);
    this.#known.get('ref')?.add(ref);
    this.bytes += bytes.length;
    const texts = object.texts.map(({ role, text }, message) => ({
      ...this.#nameOf(object, message),
      message,
      role,
      text,
      passages: passages[message] ?? [],
    }));
    this.records.push({ object, seq: seq + this.records.length + 1, texts });
    return 'durable';
  }

  /**
   * Returns the digest and the reference under which a text is indexed. The digest is the text's own, unless the record
   * does not consist of one text, or another record, such as a note, already has the same text. Then the digest is made
   * of the record's digest and the text's index.
   */
  #nameOf({ digest, ref, textDigest }: NewObject, message: number) {
    if (textDigest === undefined) return { digest: `${digest}#${message}`, ref };
    const isTaken = this.#isKnown('text', textDigest);
    this.#known.get('text')?.add(textDigest);
    return { digest: isTaken ? `${digest}#${message}` : textDigest, ref: referenceOf(textDigest) };
  }

  #isKnown(what: string, name: string): boolean {
    return this.#known.get(what)?.has(name) === true;
  }
}

/** Returns the key of a record's conversation: its session; without a session its digest, which no other record has. */
export function threadOf({ session, digest }: NewObject): string {
  return session === '' ? digest : session;
}
