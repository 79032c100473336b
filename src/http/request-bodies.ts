import type { IncomingMessage } from 'node:http';
import { readZstdFrames } from '../core/encoding/zstd-frame.ts';
import type { Encoding, ExpectedBody } from '../core/http/http-form.ts';
import type { BodyDecoder } from '../ports/body-decoder.ts';
import { readBody } from './body.ts';
import { ByteBudget, type Lease } from './byte-budget.ts';

/**
 * Reads and decodes request bodies within one budget for the whole process (R38). It never decodes
 * anything for which there is no room, and never works for a client that has gone.
 */
export class RequestBodies {
  readonly #decode: BodyDecoder;
  readonly #limit: () => number;
  /** Bodies as the handler gets them, until it is done with them. */
  readonly #bodies: ByteBudget;
  /** Encoded bytes until they are decoded. A budget of their own: they wait for room in the other. */
  readonly #encoded: ByteBudget;

  #bytesMax: number;

  /** `bytesMax` is asked at each body. */
  constructor(decode: BodyDecoder, bytesMax: () => number) {
    this.#decode = decode;
    this.#limit = bytesMax;
    this.#bytesMax = bytesMax();
    this.#bodies = new ByteBudget({
      bytesMax: bodiesBytes(this.#bytesMax),
      waitMs: WAIT_MS,
      waitingMax: WAITING_MAX,
    });
    this.#encoded = new ByteBudget({
      bytesMax: encodedBytes(this.#bytesMax),
      waitMs: WAIT_MS,
      waitingMax: WAITING_MAX,
    });
  }

  /**
   * 'gone': the client went first, which `sender` tells. Throws ProxyError; the rest of the body may be
   * unread then.
   */
  async receive(
    incoming: IncomingMessage,
    expected: ExpectedBody | undefined,
    sender: BodySender,
  ): Promise<ReceivedBody | 'gone'> {
    if (expected === undefined) return NO_BODY;
    this.#followLimit();
    try {
      return expected.encoding === 'identity'
        ? await this.#receivePlain(incoming, expected, sender)
        : await this.#receiveEncoded(incoming, expected, sender);
    } catch (error) {
      if (sender.gone.aborted) return 'gone';
      throw error;
    }
  }

  #followLimit(): void {
    const bytesMax = this.#limit();
    if (bytesMax === this.#bytesMax) return;
    this.#bytesMax = bytesMax;
    this.#bodies.resize(bodiesBytes(bytesMax));
    this.#encoded.resize(encodedBytes(bytesMax));
  }

  async #receivePlain(
    incoming: IncomingMessage,
    expected: ExpectedBody,
    { gone, owner }: BodySender,
  ): Promise<ReceivedBody | 'gone'> {
    const bytes = expected.length ?? 0;
    gone.throwIfAborted();
    const lease =
      this.#bodies.takeNow(bytes, owner) ?? (await this.#bodies.take(bytes, gone, owner));
    try {
      const body = await readInto(lease, incoming, expected);
      if (body !== undefined) return { body, release: () => lease.release() };
    } catch (error) {
      lease.release();
      throw error;
    }
    lease.release();
    return 'gone';
  }

  async #receiveEncoded(
    incoming: IncomingMessage,
    expected: ExpectedBody,
    { gone, owner }: BodySender,
  ): Promise<ReceivedBody | 'gone'> {
    const wire = await this.#encoded.take(expected.length ?? 0, gone, owner);
    try {
      const encoded = await readInto(wire, incoming, expected);
      if (encoded === undefined) return 'gone';
      const { encoding } = expected;
      const bound = decodedBound(encoded, encoding, this.#bytesMax);
      const lease = await this.#bodies.take(bound, gone, owner);
      try {
        const limits = { decodedBytesMax: this.#bytesMax, deadlineMs: DECODE_MS, signal: gone };
        const body = await this.#decode(encoded, encoding, limits);
        const both = body.length + encoded.length;
        const keeps = expected.keepsEncoded === true && both <= bound;
        lease.resize(keeps ? both : Math.min(bound, body.length));
        const asSent = keeps ? { encoded: { bytes: encoded, encoding } } : {};
        return { body, ...asSent, release: () => lease.release() };
      } catch (error) {
        lease.release();
        throw error;
      }
    } finally {
      wire.release();
    }
  }
}

function bodiesBytes(bytesMax: number): number {
  return Math.max(BODIES_BYTES, 3 * bytesMax);
}

function encodedBytes(bytesMax: number): number {
  return Math.max(ENCODED_BYTES, bytesMax);
}

export interface BodySender {
  /** Aborts when the client hangs up. */
  readonly gone: AbortSignal;
  /** Whose body it is, where a process serves several who do not know each other. */
  readonly owner?: string;
}

/** A whole body, decoded, and its place in the budget. */
export interface ReceivedBody {
  readonly body: Buffer | undefined;
  /** The body as the client encoded it; undefined where it did not. */
  readonly encoded?: { readonly bytes: Buffer; readonly encoding: Encoding };
  /** To be called when the handler is done with the body. */
  readonly release: () => void;
}

const NO_BODY: ReceivedBody = { body: undefined, release: () => {} };

/**
 * Three bodies of the largest size at once. A person's agents send 1 MB each; with 60 bodies of 62 MiB
 * the process then stays below 600 MB.
 */
const BODIES_BYTES = 192 << 20;

/** One body that does not compress, and the short ones beside it. */
const ENCODED_BYTES = 72 << 20;

/** Milliseconds that a body waits for room. Reading the largest takes about half a second. */
const WAIT_MS = 2_000;
const WAITING_MAX = 16;

/**
 * Milliseconds to decode a body. The largest takes about one second in the slowest decoder, and several
 * on a machine that is busy.
 */
const DECODE_MS = 10_000;

// The best that deflate can do: 258 bytes from two bits.
const DEFLATE_RATIO_MAX = 1_032;

/**
 * Bytes that a body may decode to at most, known before anything is decoded. Throws ProxyError for a
 * zstd body whose frames are malformed or declare more than `decodedBytesMax`.
 */
function decodedBound(encoded: Uint8Array, encoding: Encoding, decodedBytesMax: number): number {
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

/** A body without an announced length takes its room as it arrives. */
function readInto(
  lease: Lease,
  incoming: IncomingMessage,
  expected: ExpectedBody,
): Promise<Buffer | undefined> {
  const isAnnounced = expected.length !== undefined;
  return readBody(incoming, expected, isAnnounced ? undefined : (bytes) => lease.resize(bytes));
}
