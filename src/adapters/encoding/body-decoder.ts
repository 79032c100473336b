import { brotliDecompress, type BrotliOptions, gunzip, inflate, type ZlibOptions } from 'node:zlib';
import { ProxyError } from '../../core/errors.ts';
import type { BodyDecoder, DecodeLimits } from '../../ports/body-decoder.ts';
import { decodeZstdNatively, hasNativeZstd } from './native-zstd.ts';
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

async function decodeWithZlib(
  encoded: Buffer,
  encoding: string,
  limits: DecodeLimits,
): Promise<Buffer> {
  switch (encoding) {
    case 'identity':
      return encoded;
    case 'gzip':
      return runZlib(gunzip, encoded, limits);
    case 'deflate':
      return runZlib(inflate, encoded, limits);
    case 'br':
      return runZlib(brotliDecompress, encoded, limits);
    default:
      throw new ProxyError('ENCODING_UNSUPPORTED', 'The content encoding is unknown.');
  }
}

type OneShot = (
  encoded: Buffer,
  options: ZlibOptions & BrotliOptions,
  done: (error: Error | null, result: unknown) => void,
) => void;

/** With `info` set, the result holds the engine beside the bytes. */
interface ZlibResult {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

// Few large chunks instead of thousands of small ones: each comes over the main thread once.
const CHUNK_BYTES = 128 << 10;

function runZlib(
  run: OneShot,
  encoded: Buffer,
  { decodedBytesMax, deadlineMs }: DecodeLimits,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // The output limit ends the work soon after; only nobody waits for it any more.
    const timer = setTimeout(() => reject(tooSlow()), deadlineMs);
    const options = { maxOutputLength: decodedBytesMax, chunkSize: CHUNK_BYTES, info: true };
    run(encoded, options, (error, result) => {
      clearTimeout(timer);
      if (error !== null) {
        reject(isOutputLimit(error) ? tooLarge(error) : unreadable(error));
        return;
      }
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- What `info: true` returns has no type.
      const { buffer, engine } = result as ZlibResult;
      // zlib stops silently at what follows the end; a body is whole or it is refused.
      if (engine.bytesWritten === encoded.length) resolve(buffer);
      else reject(unreadable());
    });
  });
}

function isOutputLimit(error: Error): boolean {
  return 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
}

function unreadable(cause?: Error): ProxyError {
  return new ProxyError('BODY_UNREADABLE', 'The encoded body is malformed or cut off.', { cause });
}

function tooLarge(cause?: Error): ProxyError {
  return new ProxyError('BODY_TOO_LARGE', 'The decoded body is over the limit.', { cause });
}

function tooSlow(): ProxyError {
  return new ProxyError('BODY_TOO_LARGE', 'The body takes too long to decode.');
}
