import { Buffer } from 'node:buffer';

/**
 * Remembers what was made of texts that come again and again. It holds up to twice as many as `most`: those
 * that were asked for lately, and the full list before that one. To keep an order of use would cost more.
 */
export class Known<Value> {
  readonly #most: number;
  #lately = new Map<string, Value>();
  #before = new Map<string, Value>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): Value | undefined {
    const lately = this.#lately.get(key);
    if (lately !== undefined) return lately;
    const before = this.#before.get(key);
    if (before !== undefined) this.set(key, before);
    return before;
  }

  set(key: string, value: Value): void {
    if (this.#lately.size === this.#most) {
      this.#before = this.#lately;
      this.#lately = new Map();
    }
    this.#lately.set(copied(key), value);
  }
}

/** V8 keeps a whole text for a piece of it that is longer than this. */
const COPIED_CHARS_MAX = 12;

/** The same text, which does not keep the one that it was cut from. */
export function copied(text: string): string {
  if (text.length <= COPIED_CHARS_MAX) return text;
  return Buffer.from(text, 'utf16le').toString('utf16le');
}
