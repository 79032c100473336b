import { createHash, hash, type Hash } from 'node:crypto';

/**
 * Identifies signed thinking. A provider signs or encrypts what a model thought, and the client sends it back word
 * for word. So the signature alone identifies a thought.
 */

/** Characters of an id. They hold 132 bits, so two thoughts never have the same id by chance. */
const ID_CHARS = 22;

/** Returns the id of a thought. `signature`: the provider's signature, or the encrypted text. */
export function thoughtId(signature: string): string {
  return hash('sha256', signature, 'base64url').slice(0, ID_CHARS);
}

/** Bound on the thoughts of one answer. Long answers of today's models have some twenty. */
const THOUGHTS_MAX = 1_024;

/** Collects the thoughts of one answer, whose signatures may arrive in pieces. */
export class ThoughtCollector {
  readonly #onThought: (id: string) => void;
  readonly #ids = new Set<string>();
  /** The hashes of the signatures that are not complete yet. */
  readonly #open = new Map<unknown, Hash>();

  /** `onThought` is called once per thought, while the piece that completes it is read. */
  constructor(onThought: (id: string) => void) {
    this.#onThought = onThought;
  }

  get ids(): readonly string[] {
    return [...this.#ids];
  }

  /** Adds a piece to the signature with this key. A piece that repeats the whole signature so far is ignored. */
  append(key: unknown, piece: unknown): void {
    if (typeof piece !== 'string' || piece === '') return;
    const before = this.#open.get(key);
    if (before !== undefined) {
      if (idOf(before.copy()) !== thoughtId(piece)) before.update(piece);
    } else if (this.#open.size < THOUGHTS_MAX) {
      this.#open.set(key, createHash('sha256').update(piece));
    }
  }

  /** Completes the thought with this key, if there is one. */
  complete(key: unknown): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    this.#add(idOf(open));
  }

  completeAll(): void {
    for (const key of this.#open.keys()) this.complete(key);
  }

  add(signature: unknown): void {
    if (typeof signature === 'string' && signature !== '') this.#add(thoughtId(signature));
  }

  #add(id: string): void {
    if (this.#ids.has(id) || this.#ids.size >= THOUGHTS_MAX) return;
    this.#ids.add(id);
    this.#onThought(id);
  }
}

function idOf(sum: Hash): string {
  return sum.digest('base64url').slice(0, ID_CHARS);
}
