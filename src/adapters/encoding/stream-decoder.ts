import type { Transform } from 'node:stream';
import { ProxyError } from '../../core/errors.ts';
import type { DecodeLimits } from '../../ports/body-decoder.ts';

/** A decoding stream of node:zlib. */
export interface ZlibStream extends Transform {
  /** The number of encoded bytes that the decoder has read. */
  readonly bytesWritten: number;
}

/**
 * Decodes a whole body with a stream that processes one chunk at a time on Node's thread pool. It stops after the
 * current chunk if a limit or the deadline is exceeded, or if `signal` aborts.
 */
export function runDecoder(
  stream: ZlibStream,
  encoded: Buffer,
  { decodedBytesMax, deadlineMs, signal }: DecodeLimits,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const output = new Output(decodedBytesMax);
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      stream.destroy();
      act();
    };
    const onAbort = (): void => settle(() => reject(signal?.reason));
    const timer = setTimeout(() => settle(() => reject(tooSlow())), deadlineMs);
    if (signal?.aborted === true) {
      onAbort();
      return;
    }
    signal?.addEventListener('abort', onAbort, { once: true });
    stream.on('data', (chunk: Buffer) => {
      if (!output.add(chunk)) settle(() => reject(tooLarge()));
    });
    stream.on('error', (error) => settle(() => reject(unreadable(error))));
    stream.on('end', () => {
      // zlib ignores bytes that follow the encoded stream. Refuse such a body.
      const isWhole = stream.bytesWritten === encoded.length;
      settle(() => (isWhole ? resolve(output.take()) : reject(unreadable())));
    });
    stream.end(encoded);
  });
}

/**
 * Up to this size a body is kept as chunks, which are joined at the end. When a body grows longer, its chunks are moved
 * into a buffer of the largest allowed size, and all later ones are written there. So at most JOINED_BYTES_MAX bytes of
 * a body are ever held twice. The system provides the buffer's pages only as they are written.
 */
const JOINED_BYTES_MAX = 4 << 20;

class Output {
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #whole: Buffer | undefined;
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Adds a chunk. Returns false if the body is now over its limit. */
  add(chunk: Buffer): boolean {
    const end = this.#length + chunk.length;
    if (end > this.#bytesMax) return false;
    if (this.#whole === undefined && end > JOINED_BYTES_MAX) this.#startWhole();
    if (this.#whole === undefined) this.#chunks.push(chunk);
    else chunk.copy(this.#whole, this.#length);
    this.#length = end;
    return true;
  }

  take(): Buffer {
    return this.#whole?.subarray(0, this.#length) ?? Buffer.concat(this.#chunks, this.#length);
  }

  #startWhole(): void {
    const whole = Buffer.allocUnsafeSlow(this.#bytesMax);
    let at = 0;
    for (const chunk of this.#chunks) at += chunk.copy(whole, at);
    this.#chunks = [];
    this.#whole = whole;
  }
}

function unreadable(cause?: Error): ProxyError {
  return new ProxyError('BODY_UNREADABLE', 'The encoded body is malformed or cut off.', { cause });
}

export function tooLarge(): ProxyError {
  return new ProxyError('BODY_TOO_LARGE', 'The decoded body is over the limit.');
}

function tooSlow(): ProxyError {
  return new ProxyError('BODY_TOO_LARGE', 'The body takes too long to decode.');
}
