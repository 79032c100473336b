import { ProxyError } from '../errors.ts';

/**
 * A frame of a zstd body, as the headers of the frame and of its blocks describe it (RFC 8878). svc reads these headers
 * before any decoder sees the body, because decoders check too little: fzstd allocates whatever window a frame of
 * 16 bytes declares, and Node's own zstd accepts a truncated body as whole.
 */
export interface ZstdFrame {
  /** Offsets in the body: `start` of the magic number, `end` of the first byte after the frame. */
  readonly start: number;
  readonly end: number;
  /** The number of decoded bytes that the frame declares; undefined if it declares none. */
  readonly contentSize: number | undefined;
  /** The declared `contentSize`; without one, an upper bound of the decoded bytes by the headers of the blocks. */
  readonly decodedBytesMax: number;
}

interface ZstdBlock {
  readonly isLast: boolean;
  readonly kind: 'raw' | 'repeated' | 'compressed';
  readonly end: number;
  /** The decoded bytes of a raw or repeated block; the encoded bytes of a compressed one. */
  readonly size: number;
}

const MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50; // The low four bits may have any value (RFC 8878, 3.1.2).

/** Bytes of the largest window that RFC 9659 allows for HTTP. A decoder allocates the window of each frame. */
export const WINDOW_BYTES_MAX = 8 << 20;

/** Bytes of the largest block (RFC 8878, 3.1.1.2.4). */
const BLOCK_BYTES_MAX = 128 << 10;

// Bound on frames. Clients send one, and parallel compressors write about one for each MiB. A million empty frames are
// 9 MB, and a decoder would take long to set them up.
const FRAMES_MAX = 1_024;

// Bound on blocks. A body of 64 MiB has 512 full ones. Encoders that flush often write small blocks, but a quarter of a
// million of them are an attempt to keep the decoder busy.
const BLOCKS_MAX = 1 << 18;

/**
 * Returns the frames of a zstd body, without the skippable ones, and reads no content of blocks. Throws ProxyError:
 * BODY_UNREADABLE if the body is not whole zstd, BODY_TOO_LARGE if decoding it would take more memory than allowed.
 */
export function readZstdFrames(body: Uint8Array, decodedBytesMax: number): readonly ZstdFrame[] {
  const frames: ZstdFrame[] = [];
  const budget: Budget = {
    frames: FRAMES_MAX,
    blocks: BLOCKS_MAX,
    decodedBytes: decodedBytesMax,
  };
  for (let at = 0; at < body.length;) {
    budget.frames -= 1;
    if (budget.frames < 0) throw tooLarge('The zstd body has too many frames.');
    const magic = readInteger(body, at, 4);
    if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
      at += 8 + readInteger(body, at + 4, 4);
      if (at > body.length) throw unreadable('The zstd body is cut off.');
      continue;
    }
    if (magic !== MAGIC) throw unreadable('The body is not zstd, or more follows it.');
    const frame = readFrame(body, at, budget);
    frames.push(frame);
    at = frame.end;
  }
  if (frames.length === 0) throw unreadable('The zstd body is empty.');
  return frames;
}

interface Budget {
  frames: number;
  blocks: number;
  decodedBytes: number;
}

function readFrame(body: Uint8Array, start: number, budget: Budget): ZstdFrame {
  const header = readFrameHeader(body, start);
  const { contentSize, windowSize } = header;
  if (windowSize > WINDOW_BYTES_MAX) throw tooLarge('The zstd body needs too large a window.');
  if ((contentSize ?? 0) > budget.decodedBytes) throw tooLarge(OVER_LIMIT);
  const blockBytesMax = Math.min(windowSize, BLOCK_BYTES_MAX);
  let at = header.blocks;
  let known = 0; // Decoded bytes that the block headers state exactly.
  let possible = 0; // The same, with the upper bound for each compressed block.
  for (let isLast = false; !isLast;) {
    budget.blocks -= 1;
    if (budget.blocks < 0) throw tooLarge('The zstd body has too many blocks.');
    const block = readBlock(body, at, blockBytesMax);
    if (block.kind !== 'compressed') known += block.size;
    possible += block.kind === 'compressed' ? blockBytesMax : block.size;
    if (known > budget.decodedBytes) throw tooLarge(OVER_LIMIT);
    at = block.end;
    isLast = block.isLast;
  }
  budget.decodedBytes -= Math.max(known, contentSize ?? 0);
  if (header.hasChecksum) at += 4;
  if (at > body.length) throw unreadable('The zstd body is cut off.');
  return { start, end: at, contentSize, decodedBytesMax: contentSize ?? possible };
}

interface FrameHeader {
  readonly blocks: number;
  readonly windowSize: number;
  readonly contentSize: number | undefined;
  readonly hasChecksum: boolean;
}

function readFrameHeader(body: Uint8Array, start: number): FrameHeader {
  const descriptor = readInteger(body, start + 4, 1);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  if ((descriptor & 0x08) !== 0) throw unreadable('The zstd body sets a reserved bit.');
  let at = start + 5;
  let windowSize = 0;
  if (!isSingleSegment) {
    const window = readInteger(body, at, 1);
    const base = 2 ** (10 + (window >> 3));
    windowSize = base + (base / 8) * (window & 7);
    at += 1;
  }
  const idBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  if (readInteger(body, at, idBytes) !== 0) {
    throw unreadable('The zstd body needs a dictionary.');
  }
  at += idBytes;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  const size = readInteger(body, at, sizeBytes) + (sizeBytes === 2 ? 256 : 0);
  return {
    blocks: at + sizeBytes,
    windowSize: isSingleSegment ? size : windowSize,
    contentSize: sizeBytes === 0 ? undefined : size,
    hasChecksum: (descriptor & 0x04) !== 0,
  };
}

/** Reads the header of the block at `at`. Throws if it is malformed, or if the block ends outside the body. */
function readBlock(body: Uint8Array, at: number, blockBytesMax: number): ZstdBlock {
  const header = readInteger(body, at, 3);
  const kind = (['raw', 'repeated', 'compressed'] as const)[(header >> 1) & 3];
  const size = header >> 3;
  if (kind === undefined) throw unreadable('The zstd body has a block of an unknown kind.');
  if (size > blockBytesMax) throw unreadable('The zstd body has a block that is too long.');
  const end = at + 3 + (kind === 'repeated' ? 1 : size);
  if (end > body.length) throw unreadable('The zstd body is cut off.');
  return { isLast: (header & 1) === 1, kind, end, size };
}

/** Reads a little-endian unsigned integer. The result is exact below 2^53; a larger one exceeds every limit. */
function readInteger(body: Uint8Array, at: number, length: number): number {
  let value = 0;
  for (let index = length - 1; index >= 0; index -= 1) {
    const byte = body[at + index];
    if (byte === undefined) throw unreadable('The zstd body is cut off.');
    value = value * 256 + byte;
  }
  return value;
}

const OVER_LIMIT = 'The decoded body is over the limit.';

function tooLarge(message: string): ProxyError {
  return new ProxyError('BODY_TOO_LARGE', message);
}

function unreadable(message: string): ProxyError {
  return new ProxyError('BODY_UNREADABLE', message);
}
