import type { Encoding } from '../http/http-form.ts';
import { readZstdFrames } from './zstd-frame.ts';

// The best that deflate can do: 258 bytes from two bits.
const DEFLATE_RATIO_MAX = 1_032;

/**
 * Bytes that a body may decode to at most, known before anything is decoded. Throws ProxyError for a
 * zstd body whose frames are malformed or declare more than `decodedBytesMax`.
 */
export function decodedBound(
  encoded: Uint8Array,
  encoding: Encoding,
  decodedBytesMax: number,
): number {
  switch (encoding) {
    case 'identity':
      return encoded.length;
    case 'gzip':
    case 'deflate':
      return Math.min(decodedBytesMax, encoded.length * DEFLATE_RATIO_MAX);
    case 'br': // A few bytes may repeat for ever.
      return decodedBytesMax;
    case 'zstd': {
      const frames = readZstdFrames(encoded, decodedBytesMax);
      const bound = frames.reduce((sum, frame) => sum + frame.decodedBytesMax, 0);
      return Math.min(decodedBytesMax, bound);
    }
  }
}
