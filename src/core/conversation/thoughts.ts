import { createHash, hash, type Hash } from 'node:crypto';

/**
 * The identity of signed thinking. A provider signs what a model thought, or encrypts it, and the
 * client sends that back word for word. So the signature alone tells one thought from another.
 */

/** 132 bits: enough that no two thoughts share an id, and short enough for a row each. */
const ID_CHARS = 22;

/** The id of a thought. `signature`: the provider's signature of it, or its encrypted text. */
export function thoughtId(signature: string): string {
  return hash('sha256', signature, 'base64url').slice(0, ID_CHARS);
}

/** Bounds the thoughts of one answer. Long answers of today's models have some twenty. */
const THOUGHTS_MAX = 1_024;

/** Collects the thoughts of one answer, whose signatures may arrive in pieces. */
export class ThoughtCollector {
  readonly #onThought: (id: string) => void;
  readonly #ids = new Set<string>();
  /** Hashes of the pieces so far: a signature may be long, and only its hash is wanted. */
  readonly #open = new Map<unknown, Hash>();

  /** `onThought` is called once for each thought, while the piece that completes it is read. */
  constructor(onThought: (id: string) => void) {
    this.#onThought = onThought;
  }

  get ids(): readonly string[] {
    return [...this.#ids];
  }

  /** Adds a piece to the thought with this key. A whole signature that is repeated counts once. */
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

  /** Adds a thought whose signature is known whole. */
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
