import type { IncomingMessage, ServerResponse } from 'node:http';
import { readZstdFrames } from '../core/encoding/zstd-frame.ts';
import type { Encoding, ExpectedBody } from '../core/http/http-form.ts';
import type { BodyDecoder } from '../ports/body-decoder.ts';
import { type BudgetLimits, ByteBudget, type Lease } from './byte-budget.ts';
import { ProxyError } from '../core/errors.ts';

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

  readonly #budget: BudgetLimits;
  #bytesMax: number;

  /** `bytesMax` is asked at each body. `budget` bounds all decoded bodies together. */
  constructor(decode: BodyDecoder, bytesMax: () => number, budget: BudgetLimits = BODIES) {
    this.#decode = decode;
    this.#limit = bytesMax;
    this.#bytesMax = bytesMax();
    this.#budget = budget;
    this.#bodies = new ByteBudget({ ...budget, bytesMax: this.#bodiesBytes() });
    this.#encoded = new ByteBudget({ ...budget, bytesMax: encodedBytes(this.#bytesMax) });
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
    this.#bodies.resize(this.#bodiesBytes());
    this.#encoded.resize(encodedBytes(bytesMax));
  }

  /** Three bodies of the largest size fit at once. */
  #bodiesBytes(): number {
    return Math.max(this.#budget.bytesMax, 3 * this.#bytesMax);
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

function encodedBytes(bytesMax: number): number {
  return Math.max(ENCODED_BYTES, bytesMax);
}

interface BodySender {
  /** Aborts when the client hangs up. */
  readonly gone: AbortSignal;
  /** Whose body it is, where a process serves several who do not know each other. */
  readonly owner?: string;
}

/** A whole body, decoded, and its place in the budget. */
interface ReceivedBody {
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

/** A body waits for room for `waitMs` at most. Reading the largest takes about half a second. */
const BODIES: BudgetLimits = { bytesMax: BODIES_BYTES, waitMs: 2_000, waitingMax: 16 };

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

/**
 * Collects a request body into one Buffer, up to its limit. The server's `requestTimeout` limits
 * the time. Resolves to undefined when the client hangs up before the body is whole; throws
 * ProxyError BODY_TOO_LARGE with the rest of the body unread. `onBytes` gets the number of bytes so
 * far; an error that it throws ends the reading likewise.
 */
export function readBody(
  incoming: IncomingMessage,
  { length, wireBytesMax }: Pick<ExpectedBody, 'length' | 'wireBytesMax'>,
  onBytes?: (bytes: number) => void,
): Promise<Buffer | undefined> {
  const bytes = length === undefined ? new GrowingBytes() : new ExpectedBytes(length);
  return new Promise((resolve, reject) => {
    const onData = (chunk: Buffer): void => {
      try {
        bytes.add(chunk);
        if (bytes.length > wireBytesMax) {
          throw new ProxyError('BODY_TOO_LARGE', 'The body is over the limit.');
        }
        onBytes?.(bytes.length);
      } catch (error) {
        // The request lives until its answer is out; no listener of it may hold the bytes so long.
        incoming.pause();
        incoming.off('data', onData);
        incoming.off('end', onEnd);
        incoming.off('close', onClose);
        reject(error);
      }
    };
    const onEnd = (): void => resolve(bytes.take());
    // Also after the end, where it changes nothing.
    const onClose = (): void => resolve(undefined);
    incoming.on('data', onData);
    incoming.on('end', onEnd);
    incoming.on('close', onClose);
    // A connection that breaks says so here and then closes.
    incoming.on('error', ignore);
  });
}

function ignore(): void {}

interface Bytes {
  readonly length: number;
  add(chunk: Buffer): void;
  /** Once: the bytes are the caller's then. */
  take(): Buffer;
}

/** The client said how long the body is: each chunk goes to its place at once. */
class ExpectedBytes implements Bytes {
  readonly #expected: number;
  #whole: Buffer | undefined;
  length = 0;

  constructor(expected: number) {
    this.#expected = expected;
  }

  add(chunk: Buffer): void {
    const at = this.length;
    this.length += chunk.length;
    if (chunk.length === this.#expected) {
      this.#whole = chunk;
      return;
    }
    this.#whole ??= Buffer.allocUnsafeSlow(this.#expected);
    chunk.copy(this.#whole, at);
  }

  take(): Buffer {
    const whole = this.#whole ?? Buffer.alloc(0);
    this.#whole = undefined;
    return this.length === whole.length ? whole : whole.subarray(0, this.length);
  }
}

class GrowingBytes implements Bytes {
  readonly #chunks: Buffer[] = [];
  length = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.length += chunk.length;
  }

  take(): Buffer {
    return Buffer.concat(this.#chunks.splice(0), this.length);
  }
}

/**
 * Sends `100 Continue`. Node puts it behind the head of the answer where an earlier answer on the connection is
 * not out yet, so svc waits until the connection is this answer's.
 */
export function askForBody(outgoing: ServerResponse): void {
  if (outgoing.socket !== null) {
    outgoing.writeContinue();
    return;
  }
  outgoing.once('socket', () => {
    if (!outgoing.headersSent) outgoing.writeContinue();
  });
}
