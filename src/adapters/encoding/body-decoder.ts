import * as zlib from 'node:zlib';
import { ProxyError } from '../../core/errors.ts';
import type { BodyDecoder, DecodeLimits } from '../../ports/body-decoder.ts';
import { runDecoder, tooLarge, type ZlibStream } from './stream-decoder.ts';
import { Worker } from 'node:worker_threads';
import { readZstdFrames, WINDOW_BYTES_MAX } from '../../core/encoding/zstd-frame.ts';
import { workerFile } from '../processes/worker-file.ts';
import type { ZstdJob, ZstdResult } from './zstd-worker.ts';

/**
 * Decodes request bodies: gzip, deflate and br on Node's thread pool. zstd is decoded there too if Node supports it,
 * else in a worker thread. A body is decoded whole or refused.
 */
interface RequestDecoder {
  readonly decode: BodyDecoder;
  close(): Promise<void>;
}

interface DecoderOptions {
  /** False: decode zstd in the worker even if Node supports it. */
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
    close: () => thread.close(),
  };
}

/** Bytes of a decoded chunk. Chunks are large, because each one costs a round trip to the main thread. */
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
      return runDecoder(zlib.createGunzip({ chunkSize: CHUNK_BYTES }), encoded, limits);
    case 'deflate':
      return runDecoder(zlib.createInflate({ chunkSize: CHUNK_BYTES }), encoded, limits);
    case 'br':
      return runDecoder(zlib.createBrotliDecompress({ chunkSize: CHUNK_BYTES }), encoded, limits);
    default:
      throw new ProxyError('ENCODING_UNSUPPORTED', 'The content encoding is unknown.');
  }
}

/**
 * Decodes zstd bodies in a worker, one after the other. If a job exceeds its deadline, the worker is terminated and the
 * next job starts another. fzstd blocks its thread while it decodes, so it must never run on the main thread.
 */
class ZstdThread {
  #running: Running | undefined;
  /** Resolves when all jobs so far have ended. */
  #queue: Promise<unknown> = Promise.resolve();

  /** Decodes a body. `limits.deadlineMs` counts from the moment at which the worker starts the job. */
  async decode(encoded: Buffer, limits: DecodeLimits): Promise<Buffer> {
    // Refuse a body with invalid frame headers before it enters the queue.
    readZstdFrames(encoded, limits.decodedBytesMax);
    const job = this.#queue.then(() => this.#run(encoded, limits));
    this.#queue = job.catch(() => undefined);
    return job;
  }

  async close(): Promise<void> {
    if (this.#running !== undefined) await this.#drop(this.#running);
  }

  async #run(encoded: Buffer, limits: DecodeLimits): Promise<Buffer> {
    limits.signal?.throwIfAborted();
    const running = this.#use();
    await running.online;
    // Check again: nothing listened for an abort while the worker started, which takes about 50 ms.
    limits.signal?.throwIfAborted();
    const result = await askWorker(running.worker, encoded, limits);
    if (result === 'late') {
      await this.#drop(running);
      limits.signal?.throwIfAborted();
      throw new ProxyError('BODY_TOO_LARGE', 'The body takes too much time to decode.');
    }
    if ('code' in result) throw new ProxyError(result.code, result.message);
    const { buffer, byteOffset, byteLength } = result.decoded;
    return Buffer.from(buffer, byteOffset, byteLength);
  }

  #use(): Running {
    if (this.#running !== undefined) return this.#running;
    const running = startWorker();
    running.worker.once('exit', () => this.#forget(running));
    this.#running = running;
    return running;
  }

  async #drop(running: Running): Promise<void> {
    this.#forget(running);
    await running.worker.terminate();
  }

  #forget(running: Running): void {
    if (this.#running === running) this.#running = undefined;
  }
}

interface Running {
  readonly worker: Worker;
  /** Resolves when the worker runs; rejects if it cannot be started. */
  readonly online: Promise<void>;
}

function startWorker(): Running {
  const worker = new Worker(workerFile('zstd-worker'), {
    // The worker gets neither the environment, which holds keys, nor the process's flags.
    env: {},
    execArgv: [],
    // This heap holds only a few tables: the bytes of bodies are outside it.
    resourceLimits: { maxOldGenerationSizeMb: 64 },
  });
  worker.unref();
  const online = new Promise<void>((resolve, reject) => {
    worker.once('online', resolve);
    worker.on('error', reject);
  });
  // The job that uses the worker reports a failed start.
  online.catch(() => undefined);
  return { worker, online };
}

/**
 * Sends a job to the worker. Returns 'late' if there is no answer in time, if `signal` aborts, or if the worker ends.
 */
function askWorker(
  worker: Worker,
  encoded: Buffer,
  { deadlineMs, decodedBytesMax, signal }: DecodeLimits,
): Promise<ZstdResult | 'late'> {
  return new Promise((resolve) => {
    const settle = (result: ZstdResult | 'late'): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onExit);
      worker.off('message', settle);
      worker.off('exit', onExit);
      resolve(result);
    };
    const onExit = (): void => settle('late');
    const timer = setTimeout(onExit, deadlineMs);
    signal?.addEventListener('abort', onExit, { once: true });
    worker.on('message', settle);
    worker.on('exit', onExit);
    // Transfer a copy: the memory of a small Buffer is shared with other Buffers, and a transfer would take it away.
    const bytes = new Uint8Array(encoded);
    const job: ZstdJob = { encoded: bytes.buffer, decodedBytesMax };
    worker.postMessage(job, [job.encoded]);
  });
}

interface NativeZstd {
  readonly createZstdDecompress: (options: object) => ZlibStream;
  readonly constants: { readonly ZSTD_d_windowLogMax: number };
}

export const hasNativeZstd = 'createZstdDecompress' in zlib;

/**
 * Decodes zstd with node:zlib (Node 22.15 and later), one frame at a time. svc finds the end of each frame itself,
 * because Node accepts a truncated frame as whole and ignores every frame after the first.
 */
async function decodeZstdNatively(encoded: Buffer, limits: DecodeLimits): Promise<Buffer> {
  const startedAt = performance.now();
  const decoded: Buffer[] = [];
  let bytesLeft = limits.decodedBytesMax;
  for (const frame of readZstdFrames(encoded, limits.decodedBytesMax)) {
    const deadlineMs = limits.deadlineMs - (performance.now() - startedAt);
    // Decode in order, because each frame may use only the bytes and the time that earlier frames have left.
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
