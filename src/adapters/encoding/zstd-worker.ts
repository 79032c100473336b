import { parentPort } from 'node:worker_threads';
import { Decompress } from 'fzstd';
import { type ErrorCode, ProxyError } from '../../core/errors.ts';
import { readZstdFrames, type ZstdFrame } from '../../core/encoding/zstd-frame.ts';

/**
 * Decodes zstd with fzstd, for a Node without zstd of its own (before 22.15). The main thread terminates this thread if
 * it takes too long. fzstd gets only whole frames whose headers are within the limits, and does not verify checksums.
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
    const frames = readZstdFrames(encoded, decodedBytesMax);
    const bound = frames.reduce((sum, frame) => sum + frame.decodedBytesMax, 0);
    // Reserve the upper bound: the system provides pages only as they are written.
    const output = new Uint8Array(Math.min(bound, decodedBytesMax));
    let length = 0;
    for (const frame of frames) length += decodeFrame(encoded, frame, output.subarray(length));
    return { decoded: output.subarray(0, length) };
  } catch (error) {
    if (error instanceof ProxyError) return { code: error.code, message: error.message };
    return { code: 'BODY_UNREADABLE', message: 'The zstd body is malformed.' };
  }
}

/**
 * Decodes a frame into `output`, and returns the number of bytes. It checks the length after each block, because a
 * frame may decode to more bytes than its header states.
 */
function decodeFrame(
  encoded: Uint8Array,
  { start, end, contentSize }: ZstdFrame,
  output: Uint8Array,
): number {
  let length = 0;
  const stream = new Decompress((block) => {
    if (length + block.length > (contentSize ?? output.length)) {
      throw contentSize === undefined
        ? new ProxyError('BODY_TOO_LARGE', 'The decoded body is over the limit.')
        : notAsLong();
    }
    output.set(block, length);
    length += block.length;
  });
  stream.push(encoded.subarray(start, end), true);
  if (contentSize !== undefined && contentSize !== length) throw notAsLong();
  return length;
}

function notAsLong(): ProxyError {
  return new ProxyError('BODY_UNREADABLE', 'The zstd body is not as long as it says.');
}
