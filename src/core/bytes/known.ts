import { Buffer } from 'node:buffer';

/**
 * Remembers what was made of texts that come again and again. It holds up to twice as many as `most`: those
 * that were asked for lately, and the full list before that one. To keep an order of use would cost more.
 */
export class Known<Value> {
  readonly #most: number;
  #lately = new TextTable<Value>();
  #before = new TextTable<Value>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): Value | undefined {
    return this.getIn(key, 0, key.length);
  }

  /** As `get` of a piece of a text, which is not cut out of it for that. */
  getIn(text: string, start: number, end: number): Value | undefined {
    const lately = this.#lately.find(text, start, end);
    if (lately !== undefined) return lately;
    const before = this.#before.find(text, start, end);
    if (before !== undefined) this.set(text.slice(start, end), before);
    return before;
  }

  set(key: string, value: Value): void {
    if (this.#lately.size < this.#most && this.#lately.set(key, value)) return;
    this.#before = this.#lately;
    this.#lately = new TextTable();
    this.#lately.set(key, value);
  }
}

const PLACES_MIN = 256;
/** Half of the places are free at least: only texts that were chosen for it take so many in a row. */
const PROBES_MAX = 64;

/**
 * A hash table by text. A Map takes three times as long, for it follows a pointer at each step: its values
 * lie all over the memory, and so do its keys.
 */
class TextTable<Value> {
  readonly #keys: string[] = [];
  readonly #values: Value[] = [];
  /** Pairs: the hash of a key, and the key's number counted from 1. It is 0 where the place is free. */
  #places = new Int32Array(2 * PLACES_MIN);

  get size(): number {
    return this.#keys.length;
  }

  find(text: string, start: number, end: number): Value | undefined {
    const number = this.#places[this.#placeOf(text, start, end) + 1] ?? 0;
    return number === 0 ? undefined : this.#values[number - 1];
  }

  /** False where there is no place for it. */
  set(key: string, value: Value): boolean {
    if (this.size * 4 >= this.#places.length) this.#grow();
    const place = this.#placeOf(key, 0, key.length);
    if (place === NO_PLACE) return false;
    const number = this.#places[place + 1] ?? 0;
    if (number > 0) {
      this.#values[number - 1] = value;
      return true;
    }
    this.#keys.push(copied(key));
    this.#values.push(value);
    this.#places[place] = hashIn(key, 0, key.length);
    this.#places[place + 1] = this.size;
    return true;
  }

  /** Where the text is, else where it may go. */
  #placeOf(text: string, start: number, end: number): number {
    const places = this.#places;
    const last = places.length - 1;
    const hash = hashIn(text, start, end);
    let place = (2 * hash) & last;
    for (let probes = 0; probes < PROBES_MAX; probes += 1) {
      const number = places[place + 1] ?? 0;
      if (number === 0) return place;
      const key = places[place] === hash ? this.#keys[number - 1] : undefined;
      if (key?.length === end - start && isAt(text, start, key)) return place;
      place = (place + 2) & last;
    }
    return NO_PLACE;
  }

  #grow(): void {
    const before = this.#places;
    const places = new Int32Array(2 * before.length);
    const last = places.length - 1;
    for (let from = 0; from < before.length; from += 2) {
      const hash = before[from] ?? 0;
      let place = (2 * hash) & last;
      while (places[place + 1] !== 0) place = (place + 2) & last;
      places[place] = hash;
      places[place + 1] = before[from + 1] ?? 0;
    }
    this.#places = places;
  }
}

/** Behind it there is none. */
const NO_PLACE = -2;

/** Each unit is mixed in; at the end the upper half is mixed into the lower one, which says the place. */
function hashIn(text: string, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x5bd1e995);
  return hash ^ (hash >>> 15);
}

function isAt(text: string, start: number, piece: string): boolean {
  for (let at = 0; at < piece.length; at += 1) {
    if (piece.charCodeAt(at) !== text.charCodeAt(start + at)) return false;
  }
  return true;
}

/** V8 keeps a whole text for a piece of it that is longer than this. */
const COPIED_CHARS_MAX = 12;

/** The same text, which does not keep the one that it was cut from. */
export function copied(text: string): string {
  if (text.length <= COPIED_CHARS_MAX) return text;
  return Buffer.from(text, 'utf16le').toString('utf16le');
}
