import * as zlib from 'node:zlib';
import { ProxyError } from '../../core/errors.ts';
import { readZstdFrames, WINDOW_BYTES_MAX } from '../../core/encoding/zstd-frame.ts';
import type { DecodeLimits } from '../../ports/body-decoder.ts';
import { runDecoder, type ZlibStream } from './stream-decoder.ts';

/**
 * zstd through node:zlib (Node 22.15 and later). One frame a call, with its end known before: Node
 * takes a cut-off frame for a whole one and ignores every frame after the first.
 */
interface NativeZstd {
  readonly createZstdDecompress: (options: object) => ZlibStream;
  readonly constants: { readonly ZSTD_d_windowLogMax: number };
}

export const hasNativeZstd = 'createZstdDecompress' in zlib;

export async function decodeZstdNatively(encoded: Buffer, limits: DecodeLimits): Promise<Buffer> {
  const startedAt = performance.now();
  const decoded: Buffer[] = [];
  let bytesLeft = limits.decodedBytesMax;
  for (const frame of readZstdFrames(encoded, limits.decodedBytesMax)) {
    const deadlineMs = limits.deadlineMs - (performance.now() - startedAt);
    // In order, because each frame may use only what the ones before it have left.
    // oxlint-disable-next-line no-await-in-loop
    const bytes = await decodeFrame(encoded.subarray(frame.start, frame.end), {
      ...limits,
      decodedBytesMax: bytesLeft,
      deadlineMs,
    });
    if (frame.contentSize !== undefined && frame.contentSize !== bytes.length) {
      throw new ProxyError('BODY_UNREADABLE', 'The zstd body is malformed.');
    }
    bytesLeft -= bytes.length;
    decoded.push(bytes);
  }
  const [only] = decoded;
  return decoded.length === 1 && only !== undefined ? only : Buffer.concat(decoded);
}

function decodeFrame(bytes: Buffer, limits: DecodeLimits): Promise<Buffer> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node 20's types do not know it.
  const { createZstdDecompress, constants } = zlib as unknown as NativeZstd;
  const stream = createZstdDecompress({
    params: { [constants.ZSTD_d_windowLogMax]: Math.log2(WINDOW_BYTES_MAX) },
  });
  return runDecoder(stream, bytes, limits);
}
