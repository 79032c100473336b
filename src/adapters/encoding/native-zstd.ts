import * as zlib from 'node:zlib';
import { ProxyError } from '../../core/errors.ts';
import { readZstdFrames, WINDOW_BYTES_MAX } from '../../core/encoding/zstd-frame.ts';
import type { DecodeLimits } from '../../ports/body-decoder.ts';

/**
 * zstd through node:zlib (Node 22.15 and later). One frame a call, with its end known before: Node
 * takes a cut-off frame for a whole one and ignores every frame after the first.
 */
interface NativeZstd {
  readonly zstdDecompress: (
    encoded: Uint8Array,
    options: object,
    done: (error: (Error & { readonly code?: string }) | null, decoded: Buffer) => void,
  ) => void;
  readonly constants: { readonly ZSTD_d_windowLogMax: number };
}

export const hasNativeZstd = 'zstdDecompress' in zlib;

export async function decodeZstdNatively(encoded: Buffer, limits: DecodeLimits): Promise<Buffer> {
  const startedAt = performance.now();
  const decoded: Buffer[] = [];
  let bytesLeft = limits.decodedBytesMax;
  for (const frame of readZstdFrames(encoded, limits.decodedBytesMax)) {
    // In order, because each frame may use only what the ones before it have left.
    // oxlint-disable-next-line no-await-in-loop
    const bytes = await decodeFrame(encoded.subarray(frame.start, frame.end), bytesLeft);
    if (frame.contentSize !== undefined && frame.contentSize !== bytes.length) throw unreadable();
    bytesLeft -= bytes.length;
    decoded.push(bytes);
    if (performance.now() - startedAt > limits.deadlineMs) {
      throw new ProxyError('BODY_TOO_LARGE', 'The body takes too long to decode.');
    }
  }
  const [only] = decoded;
  return decoded.length === 1 && only !== undefined ? only : Buffer.concat(decoded);
}

function decodeFrame(bytes: Uint8Array, decodedBytesMax: number): Promise<Buffer> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node 20's types do not know it.
  const { zstdDecompress, constants } = zlib as unknown as NativeZstd;
  const options = {
    // Zero would mean no limit.
    maxOutputLength: Math.max(1, decodedBytesMax),
    params: { [constants.ZSTD_d_windowLogMax]: Math.log2(WINDOW_BYTES_MAX) },
  };
  return new Promise((resolve, reject) => {
    zstdDecompress(bytes, options, (error, decoded) => {
      if (error === null) resolve(decoded);
      else if (error.code === 'ERR_BUFFER_TOO_LARGE') {
        reject(new ProxyError('BODY_TOO_LARGE', 'The decoded body is over the limit.'));
      } else reject(unreadable(error));
    });
  });
}

function unreadable(cause?: Error): ProxyError {
  return new ProxyError('BODY_UNREADABLE', 'The zstd body is malformed.', { cause });
}
