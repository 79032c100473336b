import { ProxyError } from '../errors.ts';
import {
  BackwardBits,
  type FseTable,
  makeConstantTable,
  makeFseTable,
  malformed,
  readFseTable,
} from './zstd-bits.ts';
import { readBlock, type ZstdBlock, type ZstdFrame } from './zstd-frame.ts';

/**
 * Reads every sequence of a zstd frame without executing it. It says exactly how many bytes the
 * frame decodes to, and refuses what the reference decoder refuses. fzstd checks little of this: it
 * takes four of five damaged frames for good ones, and learns the length of the output only by
 * writing it. This code never writes output and never looks at the literals.
 */
export interface FrameMeasure {
  readonly decodedBytes: number;
  /** Offsets in the body of the headers of blocks that write "no sequences" in two bytes. */
  readonly longZeros: readonly number[];
}

/** Throws ProxyError BODY_UNREADABLE, or BODY_TOO_LARGE as soon as `decodedBytesMax` is passed. */
export function measureZstdFrame(
  body: Uint8Array,
  frame: ZstdFrame,
  decodedBytesMax: number,
): FrameMeasure {
  const state: FrameState = { tables: [], hasHuffman: false, offsets: [1, 4, 8], produced: 0 };
  const longZeros: number[] = [];
  let at = frame.blocks;
  for (let isLast = false; !isLast;) {
    const block = readBlock(body, at, frame.blockBytesMax);
    if (block.kind === 'compressed') {
      if (readCompressed(body.subarray(0, block.end), { block, frame, state })) longZeros.push(at);
    } else {
      state.produced += block.size;
    }
    if (state.produced > decodedBytesMax) {
      throw new ProxyError('BODY_TOO_LARGE', 'The decoded body is over the limit.');
    }
    at = block.end;
    isLast = block.isLast;
  }
  if (frame.contentSize !== undefined && frame.contentSize !== state.produced) {
    throw new ProxyError('BODY_UNREADABLE', 'The zstd body is not as long as it says.');
  }
  return { decodedBytes: state.produced, longZeros };
}

/** The state that a block inherits from the blocks before it. */
interface FrameState {
  /** Literal lengths, offsets, match lengths; empty before the first block with sequences. */
  tables: readonly FseTable[];
  hasHuffman: boolean;
  /** The three most recent offsets, newest first. */
  offsets: [number, number, number];
  produced: number;
}

interface BlockContext {
  readonly block: ZstdBlock;
  readonly frame: ZstdFrame;
  readonly state: FrameState;
}

interface Literals {
  readonly end: number;
  readonly size: number;
}

/** `bytes` ends where the block ends. True when "no sequences" takes two bytes. */
function readCompressed(bytes: Uint8Array, { block, frame, state }: BlockContext): boolean {
  const literals = readLiterals(bytes, block.start, state);
  if (literals.size > frame.blockBytesMax) throw malformed();
  const { count, at } = readSequenceCount(bytes, literals.end);
  if (count === 0) {
    if (at !== bytes.length) throw malformed();
    state.produced += literals.size;
    return at - literals.end === 2;
  }
  const tables = readTables(bytes, at, state);
  state.tables = tables.tables;
  const bits = new BackwardBits(bytes, tables.end, bytes.length);
  const matched = readSequences(bits, { count, literals: literals.size, frame, state });
  if (bits.left !== 0) throw malformed();
  state.produced += literals.size + matched;
  return false;
}

function readLiterals(bytes: Uint8Array, start: number, state: FrameState): Literals {
  const first = byteAt(bytes, start);
  const kind = first & 3;
  const format = (first >> 2) & 3;
  if (kind < 2) {
    const headerBytes = [1, 2, 1, 3][format] ?? 1;
    const size = readHeader(bytes, start, headerBytes) >> (headerBytes === 1 ? 3 : 4);
    const end = start + headerBytes + (kind === 0 ? size : 1);
    if (end > bytes.length) throw malformed();
    return { end, size };
  }
  const headerBytes = [3, 3, 4, 5][format] ?? 3;
  const width = [10, 10, 14, 18][format] ?? 10;
  // Five bytes are over 32 bits: plain arithmetic, no shifts.
  const header = Math.floor(readHeader(bytes, start, headerBytes) / 16);
  const size = header % 2 ** width;
  const end = start + headerBytes + (Math.floor(header / 2 ** width) % 2 ** width);
  if (end > bytes.length) throw malformed();
  if (kind === 3 && !state.hasHuffman) throw malformed();
  const tree =
    kind === 2 ? readHuffmanTree(bytes.subarray(0, end), start + headerBytes) : undefined;
  state.hasHuffman = true;
  checkStreams(bytes, tree ?? start + headerBytes, { end, size, isSingle: format === 0 });
  return { end, size };
}

/**
 * The weights of a Huffman tree. fzstd checks their sum, and that the streams they code end
 * exactly; here: that what the weights are read from is whole. Returns where the streams begin.
 */
function readHuffmanTree(bytes: Uint8Array, start: number): number {
  const header = byteAt(bytes, start);
  if (header >= 128) {
    const end = start + 1 + ((header - 127 + 1) >> 1);
    if (end > bytes.length) throw malformed();
    return end;
  }
  const end = start + 1 + header;
  if (end > bytes.length) throw malformed();
  const weights = readFseTable(bytes.subarray(0, end), start + 1, {
    accuracyMax: 6,
    symbolMax: 255, // A byte can name them; weights over 11 are refused where they are used.
  });
  const bits = new BackwardBits(bytes, weights.end, end);
  // Two states alternate, and both are there from the beginning.
  if (bits.left < 2 * weights.table.accuracy) throw malformed();
  return end;
}

function checkStreams(
  bytes: Uint8Array,
  start: number,
  { end, size, isSingle }: { end: number; size: number; isSingle: boolean },
): void {
  if (isSingle) {
    if (start >= end || size === 0) throw malformed();
    return;
  }
  // RFC 8878 has no four streams of fewer than six literals, and each stream has a byte at least.
  if (size < 6 || end - start < 10) throw malformed();
  const three = [0, 2, 4].map((offset) => readHeader(bytes, start + offset, 2));
  const used = three.reduce((sum, length) => sum + length, 6);
  if (three.includes(0) || start + used >= end) throw malformed();
}

function readSequenceCount(bytes: Uint8Array, at: number): { count: number; at: number } {
  const first = byteAt(bytes, at);
  if (first < 128) return { count: first, at: at + 1 };
  if (first < 255) return { count: ((first - 128) << 8) + byteAt(bytes, at + 1), at: at + 2 };
  return { count: readHeader(bytes, at + 1, 2) + 0x7f00, at: at + 3 };
}

interface Alphabet {
  readonly accuracyMax: number;
  readonly symbolMax: number;
  readonly standard: FseTable;
}

// RFC 8878, 3.1.1.3.2.2: the tables that a block uses when it sends none.
const ALPHABETS: readonly Alphabet[] = [
  {
    accuracyMax: 9,
    symbolMax: 35,
    standard: makeFseTable(
      [
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1,
        1, -1, -1, -1, -1,
      ],
      6,
    ),
  },
  {
    accuracyMax: 8,
    symbolMax: 31,
    standard: makeFseTable(
      [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1],
      5,
    ),
  },
  {
    accuracyMax: 9,
    symbolMax: 52,
    standard: makeFseTable(
      [
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
      ],
      6,
    ),
  },
];

function readTables(
  bytes: Uint8Array,
  start: number,
  state: FrameState,
): { tables: readonly FseTable[]; end: number } {
  const modes = byteAt(bytes, start);
  if ((modes & 3) !== 0) throw malformed();
  let at = start + 1;
  const tables = ALPHABETS.map((alphabet, index) => {
    const mode = (modes >> (6 - 2 * index)) & 3;
    if (mode === 0) return alphabet.standard;
    if (mode === 1) {
      const symbol = byteAt(bytes, at);
      if (symbol > alphabet.symbolMax) throw malformed();
      at += 1;
      return makeConstantTable(symbol);
    }
    if (mode === 2) {
      const { table, end } = readFseTable(bytes, at, alphabet);
      at = end;
      return table;
    }
    const earlier = state.tables[index];
    if (earlier === undefined) throw malformed();
    return earlier;
  });
  return { tables, end: at };
}

// RFC 8878, 3.1.1.3.2.1.1: extra bits of each code, and the lengths that follow from them.
const LITERAL_BITS = zeros(16).concat([
  1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
]);
const MATCH_BITS = zeros(32).concat([
  1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
]);
const LITERAL_BASE = accumulate(LITERAL_BITS, 0);
const MATCH_BASE = accumulate(MATCH_BITS, 3);

// The largest offset that 25 bits hold is four times the window.
const OFFSET_CODE_MAX = 25;

interface SequencesContext {
  readonly count: number;
  readonly literals: number;
  readonly frame: ZstdFrame;
  readonly state: FrameState;
}

/** Returns how many bytes the matches of a block add to its literals. */
function readSequences(
  bits: BackwardBits,
  { count, literals, frame, state }: SequencesContext,
): number {
  const [lengths, offsets, matches] = state.tables;
  if (lengths === undefined || offsets === undefined || matches === undefined) throw malformed();
  let lengthState = bits.read(lengths.accuracy);
  let offsetState = bits.read(offsets.accuracy);
  let matchState = bits.read(matches.accuracy);
  let literalsUsed = 0;
  let matched = 0;
  for (let index = 0; index < count; index += 1) {
    const offsetCode = offsets.symbols[offsetState] ?? 0;
    if (offsetCode > OFFSET_CODE_MAX) throw malformed();
    const offsetValue = 2 ** offsetCode + bits.read(offsetCode);
    const matchCode = matches.symbols[matchState] ?? 0;
    const matchLength = (MATCH_BASE[matchCode] ?? 0) + bits.read(MATCH_BITS[matchCode] ?? 0);
    const lengthCode = lengths.symbols[lengthState] ?? 0;
    const length = (LITERAL_BASE[lengthCode] ?? 0) + bits.read(LITERAL_BITS[lengthCode] ?? 0);
    literalsUsed += length;
    const reach = state.produced + literalsUsed + matched;
    const offset = useOffset(state.offsets, offsetValue, length === 0);
    if (literalsUsed > literals || offset === 0 || offset > reach) throw malformed();
    matched += matchLength;
    if (literals + matched > frame.blockBytesMax) throw malformed();
    if (index + 1 === count) break; // The last states are never left.
    lengthState = (lengths.base[lengthState] ?? 0) + bits.read(lengths.bits[lengthState] ?? 0);
    matchState = (matches.base[matchState] ?? 0) + bits.read(matches.bits[matchState] ?? 0);
    offsetState = (offsets.base[offsetState] ?? 0) + bits.read(offsets.bits[offsetState] ?? 0);
  }
  return matched;
}

/** The distance that an offset value means; values 1 to 3 repeat an earlier distance. */
function useOffset(recent: [number, number, number], value: number, noLiterals: boolean): number {
  const [first, second, third] = recent;
  if (value > 3) {
    recent[0] = value - 3;
    recent[1] = first;
    recent[2] = second;
    return value - 3;
  }
  const index = value - (noLiterals ? 0 : 1);
  if (index === 0) return first;
  const offset = index === 1 ? second : index === 2 ? third : first - 1;
  recent[0] = offset;
  recent[1] = first;
  if (index > 1) recent[2] = second;
  return offset;
}

function byteAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at];
  if (byte === undefined) throw malformed();
  return byte;
}

/** Little-endian; five bytes at most. */
function readHeader(bytes: Uint8Array, at: number, length: number): number {
  let value = 0;
  for (let index = length - 1; index >= 0; index -= 1)
    value = value * 256 + byteAt(bytes, at + index);
  return value;
}

function zeros(count: number): number[] {
  return Array.from({ length: count }, () => 0);
}

/** The first length of each code. */
function accumulate(bits: readonly number[], first: number): number[] {
  let length = first;
  return bits.map((width) => {
    const base = length;
    length += 2 ** width;
    return base;
  });
}
