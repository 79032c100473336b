import { ProxyError } from '../errors.ts';

/**
 * The two bit streams of a zstd block and the table between them (RFC 8878, section 4). They are
 * read strictly: everything that the reference decoder refuses is refused here. Never reads outside
 * of the given range.
 */
export interface FseTable {
  readonly accuracy: number;
  /** By state: its symbol, how many bits lead on, and where they are counted from. */
  readonly symbols: Uint8Array;
  readonly bits: Uint8Array;
  readonly base: Uint16Array;
}

export interface FseLimits {
  readonly accuracyMax: number;
  /** The largest symbol of the alphabet. */
  readonly symbolMax: number;
}

/** A table that always gives the same symbol and takes no bits. */
export function makeConstantTable(symbol: number): FseTable {
  return {
    accuracy: 0,
    symbols: Uint8Array.of(symbol),
    bits: new Uint8Array(1),
    base: new Uint16Array(1),
  };
}

/** Reads the description of a table and returns it with the offset of the first byte after it. */
export function readFseTable(
  bytes: Uint8Array,
  start: number,
  limits: FseLimits,
): { table: FseTable; end: number } {
  const reader = new ForwardBits(bytes, start);
  const accuracy = reader.read(4) + 5;
  if (accuracy > limits.accuracyMax) throw malformed();
  const counts: number[] = [];
  let remaining = 1 << accuracy;
  while (remaining > 0) {
    const count = readCount(reader, remaining);
    remaining -= Math.abs(count);
    counts.push(count);
    for (let more = count === 0 ? 3 : 0; more === 3;) {
      more = reader.read(2);
      for (let index = 0; index < more; index += 1) counts.push(0);
    }
    if (counts.length > limits.symbolMax + 1) throw malformed();
  }
  return { table: makeFseTable(counts, accuracy), end: reader.end() };
}

/** -1 means "less than one": the symbol gets one state at the end of the table. */
export function makeFseTable(counts: readonly number[], accuracy: number): FseTable {
  const size = 1 << accuracy;
  const symbols = new Uint8Array(size);
  let high = size;
  for (const [symbol, count] of counts.entries()) {
    if (count !== -1) continue;
    high -= 1;
    symbols[high] = symbol;
  }
  const step = (size >> 1) + (size >> 3) + 3;
  let at = 0;
  for (const [symbol, count] of counts.entries()) {
    for (let index = 0; index < count; index += 1) {
      symbols[at] = symbol;
      do at = (at + step) & (size - 1);
      while (at >= high);
    }
  }
  return { accuracy, symbols, ...countStates(symbols, counts, accuracy) };
}

function countStates(
  symbols: Uint8Array,
  counts: readonly number[],
  accuracy: number,
): Pick<FseTable, 'bits' | 'base'> {
  const size = 1 << accuracy;
  const next = counts.map((count) => Math.abs(count));
  const bits = new Uint8Array(size);
  const base = new Uint16Array(size);
  for (let state = 0; state < size; state += 1) {
    const symbol = symbols[state] ?? 0;
    const order = next[symbol] ?? 1;
    next[symbol] = order + 1;
    const width = accuracy - (31 - Math.clz32(order));
    bits[state] = width;
    base[state] = (order << width) - size;
  }
  return { bits, base };
}

/** A count takes fewer bits when fewer values are left to choose from. */
function readCount(reader: ForwardBits, remaining: number): number {
  const width = 32 - Math.clz32(remaining + 1);
  const spare = (1 << width) - 2 - remaining;
  const half = 1 << (width - 1);
  const short = reader.peek(width - 1);
  if (short < spare) {
    reader.read(width - 1);
    return short - 1;
  }
  const long = reader.read(width);
  return (long >= half ? long - spare : long) - 1;
}

/** Lowest bit first, from the first byte on. */
class ForwardBits {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = bytes;
    this.#at = start * 8;
  }

  peek(width: number): number {
    return windowAt(this.#bytes, this.#at) & ((1 << width) - 1);
  }

  /** At most 16 bits. */
  read(width: number): number {
    const value = this.peek(width);
    this.#at += width;
    return value;
  }

  /** Offset of the first byte that was not begun. */
  end(): number {
    const end = (this.#at + 7) >> 3;
    if (end > this.#bytes.length) throw malformed();
    return end;
  }
}

/** Backwards, from the highest set bit of the last byte: how zstd writes what it codes. */
export class BackwardBits {
  readonly #bytes: Uint8Array;
  readonly #start: number;
  /** Bits that are left; below zero when more was read than there is. */
  left: number;

  constructor(bytes: Uint8Array, start: number, end: number) {
    const last = end > start ? (bytes[end - 1] ?? 0) : 0;
    if (last === 0) throw malformed();
    this.#bytes = bytes;
    this.#start = start * 8;
    this.left = (end - start) * 8 - 1 - (Math.clz32(last) - 24);
  }

  /** At most 25 bits. */
  read(width: number): number {
    this.left -= width;
    if (this.left < 0) throw malformed();
    return windowAt(this.#bytes, this.#start + this.left) & ((1 << width) - 1);
  }
}

/** At least 25 bits from the bit `at` on; beyond the end there are zeros. */
function windowAt(bytes: Uint8Array, at: number): number {
  const byte = at >> 3;
  const low = (bytes[byte] ?? 0) | ((bytes[byte + 1] ?? 0) << 8) | ((bytes[byte + 2] ?? 0) << 16);
  return (low | ((bytes[byte + 3] ?? 0) << 24)) >>> (at & 7);
}

export function malformed(): ProxyError {
  return new ProxyError('BODY_UNREADABLE', 'The zstd body is malformed.');
}
