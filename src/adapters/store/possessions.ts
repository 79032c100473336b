import { ByteCache } from '../../core/bytes/byte-cache.ts';
import { proofOf } from '../../core/shortening/proofs.ts';
import type { Holding, HoldQuestion } from '../../ports/memory.ts';
import type { Database } from './database.ts';

/**
 * Proves what the store holds. Every request of a conversation asks for proofs of its left-out
 * texts. So the bytes read for one proof serve the next, as long as nothing can have been deleted
 * since: the rule by which SQLite keeps the pages that it has read.
 */

/** A window of 200,000 tokens is about 700 kB: what some ten long conversations leave out. */
const BYTES_MAX = 8 * 1024 * 1024;
/** Reading a row notes its use, once a day; a row that is not used goes after weeks. */
const AGE_MAX_MS = 24 * 3600 * 1000;

/** A text that is stored, as the bytes that are proven; see textBytes() in core/shortening/proofs.ts. */
export interface StoredBytes {
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** Some of the texts that the store holds. */
export interface Holder {
  /** Those of the digests that it holds in this space, read now. `now`: milliseconds since 1970. */
  bytesOf(space: string, digests: readonly string[], now: number): StoredBytes[];
}

export class Possessions {
  readonly #database: Pick<Database, 'generation'>;
  readonly #holders: readonly Holder[];
  readonly #known = new ByteCache(BYTES_MAX);
  #generation = '';
  #readAt = -Infinity;

  constructor(database: Pick<Database, 'generation'>, holders: readonly Holder[]) {
    this.#database = database;
    this.#holders = holders;
  }

  /** Hashes every byte that it proves. `now`: milliseconds since 1970. */
  hold({ space, digests, nonce }: HoldQuestion, now: number): Holding[] {
    this.#dropStale(now);
    const held = new Map<string, Uint8Array>();
    const unknown: string[] = [];
    for (const digest of digests) {
      const bytes = this.#known.get(keyOf(space, digest));
      if (bytes === undefined) unknown.push(digest);
      else held.set(digest, bytes);
    }
    if (unknown.length > 0) {
      const read = this.#holders.flatMap((holder) => holder.bytesOf(space, unknown, now));
      for (const { digest, bytes } of read) {
        held.set(digest, bytes);
        this.#known.set(keyOf(space, digest), bytes);
      }
    }
    return Array.from(held, ([digest, bytes]) => ({ digest, proof: proofOf(nonce, bytes) }));
  }

  // Asked before anything is read: a deletion that comes between is seen at the next question.
  #dropStale(now: number): void {
    const generation = this.#database.generation();
    if (generation === this.#generation && now - this.#readAt < AGE_MAX_MS) return;
    this.#known.clear();
    this.#generation = generation;
    this.#readAt = now;
  }
}

/** No digest holds a blank. */
function keyOf(space: string, digest: string): string {
  return `${digest} ${space}`;
}
