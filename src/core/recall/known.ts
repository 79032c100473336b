import { Buffer } from 'node:buffer';

/**
 * Caches values computed from texts that occur often. When the current map is full, it becomes the previous one, and
 * the earlier previous one is dropped; so there are up to twice `most` entries. This costs less than tracking the order
 * of use.
 */
export class Known<Value> {
  readonly #most: number;
  #current = new Map<string, Value>();
  #previous: ReadonlyMap<string, Value> = new Map();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): Value | undefined {
    const current = this.#current.get(key);
    if (current !== undefined) return current;
    const previous = this.#previous.get(key);
    if (previous !== undefined) this.set(key, previous);
    return previous;
  }

  set(key: string, value: Value): void {
    if (this.#current.size >= this.#most) {
      this.#previous = this.#current;
      this.#current = new Map();
    }
    this.#current.set(copied(key), value);
  }
}

/** Longest slice of a text that V8 copies. A longer slice keeps the whole text in memory. */
const COPIED_CHARS_MAX = 12;

/** Copies a slice of a larger text, so that the larger text can be freed. */
export function copied(text: string): string {
  if (text.length <= COPIED_CHARS_MAX) return text;
  return Buffer.from(text, 'utf16le').toString('utf16le');
}
