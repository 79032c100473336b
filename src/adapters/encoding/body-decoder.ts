import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { ProxyError } from '../../core/errors.ts';
import type { BodyDecoder, DecodeLimits } from '../../ports/body-decoder.ts';
import { decodeZstdNatively, hasNativeZstd } from './native-zstd.ts';
import { runDecoder, tooLarge } from './stream-decoder.ts';
import { ZstdThread } from './zstd-thread.ts';

/**
 * Takes content encodings off request bodies: gzip, deflate and br on Node's own thread pool, zstd
 * there too where Node has it, else in a worker. It never returns a part of a body.
 */
export interface RequestDecoder {
  readonly decode: BodyDecoder;
  /** Starts what the first zstd body would wait for. */
  warm(): void;
  close(): Promise<void>;
}

export interface DecoderOptions {
  /** False: decode zstd in the worker even where Node could. */
  readonly useNativeZstd: boolean;
}

export function createBodyDecoder(
  { useNativeZstd }: DecoderOptions = { useNativeZstd: hasNativeZstd },
): RequestDecoder {
  const thread = new ZstdThread();
  const decodeZstd = useNativeZstd
    ? decodeZstdNatively
    : (encoded: Buffer, limits: DecodeLimits) => thread.decode(encoded, limits);
  return {
    decode: async (encoded, encoding, limits) => {
      if (encoding !== 'identity' && encoded.length === 0) {
        throw new ProxyError('BODY_UNREADABLE', 'The body is empty but encoded.');
      }
      const decoded =
        encoding === 'zstd'
          ? await decodeZstd(encoded, limits)
          : await decodeWithZlib(encoded, encoding, limits);
      if (decoded.length > limits.decodedBytesMax) throw tooLarge();
      return decoded;
    },
    warm: () => {
      if (!useNativeZstd) thread.warm();
    },
    close: () => thread.close(),
  };
}

// Few large chunks instead of thousands of small ones: each comes over the main thread once.
const CHUNK_BYTES = 128 << 10;

async function decodeWithZlib(
  encoded: Buffer,
  encoding: string,
  limits: DecodeLimits,
): Promise<Buffer> {
  switch (encoding) {
    case 'identity':
      return encoded;
    case 'gzip':
      return runDecoder(createGunzip({ chunkSize: CHUNK_BYTES }), encoded, limits);
    case 'deflate':
      return runDecoder(createInflate({ chunkSize: CHUNK_BYTES }), encoded, limits);
    case 'br':
      return runDecoder(createBrotliDecompress({ chunkSize: CHUNK_BYTES }), encoded, limits);
    default:
      throw new ProxyError('ENCODING_UNSUPPORTED', 'The content encoding is unknown.');
  }
}
