import { parentPort } from 'node:worker_threads';
import { decompress } from 'fzstd';
import { type ErrorCode, ProxyError } from '../../core/errors.ts';
import { xxh64Low } from '../../core/encoding/xxh64.ts';
import { type FrameMeasure, measureZstdFrame } from '../../core/encoding/zstd-blocks.ts';
import { readZstdFrames, type ZstdFrame } from '../../core/encoding/zstd-frame.ts';

/**
 * Decodes zstd with fzstd in a thread of its own, which the main thread ends when it takes too
 * long. fzstd only ever sees frames measured to the last sequence. It must never be the one to find
 * out whether a frame is whole, or how much memory it takes.
 */
export interface ZstdJob {
  readonly encoded: ArrayBuffer;
  readonly decodedBytesMax: number;
}

export type ZstdResult =
  | { readonly decoded: Uint8Array<ArrayBuffer> }
  | { readonly code: ErrorCode; readonly message: string };

parentPort?.on('message', ({ encoded, decodedBytesMax }: ZstdJob) => {
  const result = decode(new Uint8Array(encoded), decodedBytesMax);
  parentPort?.postMessage(result, 'decoded' in result ? [result.decoded.buffer] : []);
});

function decode(encoded: Uint8Array, decodedBytesMax: number): ZstdResult {
  try {
    const outputs = measureAll(encoded, decodedBytesMax).map(({ frame, measure }) => {
      const output = decompress(restate(encoded, frame, measure));
      checkSum(frame, output);
      return output;
    });
    return { decoded: joinBytes(outputs) };
  } catch (error) {
    if (error instanceof ProxyError) return { code: error.code, message: error.message };
    return { code: 'BODY_UNREADABLE', message: 'The zstd body is malformed.' };
  }
}

function measureAll(
  encoded: Uint8Array,
  decodedBytesMax: number,
): readonly { readonly frame: ZstdFrame; readonly measure: FrameMeasure }[] {
  let bytesLeft = decodedBytesMax;
  return readZstdFrames(encoded, decodedBytesMax).map((frame) => {
    const measure = measureZstdFrame(encoded, frame, bytesLeft);
    bytesLeft -= measure.decodedBytes;
    return { frame, measure };
  });
}

/**
 * The same frame with a header that states the measured size: fzstd then writes into one buffer of
 * that size instead of shifting a window after every block. "No sequences" takes one byte in it;
 * two are just as valid, but fzstd then looks for sequences and fails.
 */
function restate(encoded: Uint8Array, frame: ZstdFrame, measure: FrameMeasure): Uint8Array {
  const header = new DataView(new ArrayBuffer(9));
  header.setUint32(0, 0xfd2fb528, true);
  header.setUint8(4, 0xa0); // One segment, its size in four bytes, no checksum, no dictionary.
  header.setUint32(5, measure.decodedBytes, true);
  const pieces: Uint8Array[] = [new Uint8Array(header.buffer)];
  let from = frame.blocks;
  for (const at of measure.longZeros) {
    const block =
      (encoded[at] ?? 0) | ((encoded[at + 1] ?? 0) << 8) | ((encoded[at + 2] ?? 0) << 16);
    const end = at + 3 + (block >> 3);
    const shorter = block - 8; // The size is in the bits from the third on.
    pieces.push(
      encoded.subarray(from, at),
      Uint8Array.of(shorter & 0xff, (shorter >> 8) & 0xff, shorter >> 16),
      encoded.subarray(at + 3, end - 2),
      Uint8Array.of(0),
    );
    from = end;
  }
  return joinBytes([...pieces, encoded.subarray(from, frame.blocksEnd)]);
}

function checkSum(frame: ZstdFrame, decoded: Uint8Array): void {
  if (frame.checksum !== undefined && frame.checksum !== xxh64Low(decoded)) {
    throw new ProxyError('BODY_UNREADABLE', 'The zstd body does not match its checksum.');
  }
}

/** One piece that fills its memory is that memory: it need not be copied to be handed over. */
function joinBytes(pieces: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const [only] = pieces;
  const memory = pieces.length === 1 ? only?.buffer : undefined;
  if (memory instanceof ArrayBuffer && memory.byteLength === only?.byteLength) {
    return new Uint8Array(memory);
  }
  const joined = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    joined.set(piece, at);
    at += piece.length;
  }
  return joined;
}
