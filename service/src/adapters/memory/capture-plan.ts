import { referenceOf } from '../../../../src/core/memory/reference.ts';
import { type IndexedPassage, passagesOf } from '../../../../src/adapters/store/passage-index.ts';
import type {
  CaptureBatch,
  NewObject,
  ObjectState,
  SpaceState,
} from '../../ports/service-store.ts';

/** Decides for each record of a batch whether to store it. Each engine then writes what the plan lists. */

/** Passages of a batch: by object, then by text. */
type BatchPassages = readonly (readonly (readonly IndexedPassage[])[])[];

/** Cuts a batch into passages, for which no lock is needed. */
export function passagesIn({ objects }: CaptureBatch): BatchPassages {
  return objects.map(({ texts }) => texts.map(({ text, role }) => passagesOf(text, role)));
}

/** Says whether the batch belongs to an earlier generation, because a purge has come in between. */
export function isStale({ ifGeneration }: CaptureBatch, { generation }: SpaceState): boolean {
  return ifGeneration !== undefined && ifGeneration !== generation;
}

/** Returns the values of the statement `MEMORY.known` after the tenant. */
export function namesIn({ space, objects }: CaptureBatch) {
  return [
    space,
    objects.map(({ digest }) => digest),
    objects.map(({ ref }) => ref),
    objects.flatMap(({ textDigest }) => textDigest ?? []),
  ] as const;
}

/** Part of a batch that the space already has. */
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
  /** Canonical bytes that the space still takes. */
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
  /** Records of one text that the space already has: their times and sources may still be new. */
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
   * Returns the name of a text. The same words may be in two records (a note, a longer exchange); the first record's
   * text keeps the name.
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

/** Returns the key of a record's conversation: its session, or its own digest, so that no other record shares it. */
export function threadOf({ session, digest }: NewObject): string {
  return session === '' ? digest : session;
}
