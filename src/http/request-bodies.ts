import type { IncomingMessage, ServerResponse } from 'node:http';
import { readZstdFrames } from '../core/encoding/zstd-frame.ts';
import type { Encoding, ExpectedBody } from '../core/http/http-form.ts';
import type { BodyDecoder } from '../ports/body-decoder.ts';
import { ProxyError } from '../core/errors.ts';
import { CHUNK_BYTES_MIN } from './bounded-server.ts';

/**
 * Reads and decodes request bodies within two budgets for the whole process: for decoded and for encoded bodies. It
 * decodes a body only after it has reserved the bytes of the result, and stops if the client hangs up.
 */
export class RequestBodies {
  readonly #decode: BodyDecoder;
  readonly #limit: () => number;
  /** The budget of decoded bodies, which are held until the handler has finished with them. */
  readonly #bodies: ByteBudget;
  /** The budget of encoded bodies. It is separate, because an encoded body is held while it waits for `#bodies`. */
  readonly #encoded: ByteBudget;

  readonly #budget: BudgetLimits;
  #bytesMax: number;

  /**
   * `bytesMax`: returns the bound on one body; called for each body. `budget`: the bytes for all decoded bodies
   * together, and the limits of both queues. The bytes are raised to three of the largest bodies if they are fewer, and
   * SHORT_BYTES are added.
   */
  constructor(decode: BodyDecoder, bytesMax: () => number, budget: BudgetLimits = BODIES) {
    this.#decode = decode;
    this.#limit = bytesMax;
    this.#bytesMax = bytesMax();
    this.#budget = budget;
    this.#bodies = new ByteBudget({ ...budget, bytesMax: this.#bodiesBytes() });
    this.#encoded = new ByteBudget({ ...budget, bytesMax: encodedBytes(this.#bytesMax) });
  }

  /** Reads and decodes a body. Returns 'gone' if the client hung up. After an error part of the body may be unread. */
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

  /** Returns the budget in bytes. Three bodies of the largest size fit, and short ones beside them. */
  #bodiesBytes(): number {
    return Math.max(this.#budget.bytesMax, 3 * this.#bytesMax) + SHORT_BYTES;
  }

  async #receivePlain(
    incoming: IncomingMessage,
    expected: ExpectedBody,
    { gone, owner }: BodySender,
  ): Promise<ReceivedBody | 'gone'> {
    const lease = await this.#bodies.take(expected.length ?? 0, gone, owner);
    let body: Buffer | undefined;
    try {
      body = await readInto(lease, incoming, expected);
    } finally {
      if (body === undefined) lease.release();
    }
    return body === undefined ? 'gone' : { body, release: () => lease.release() };
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
  return Math.max(ENCODED_BYTES, bytesMax) + SHORT_BYTES;
}

interface BodySender {
  /** Aborts when the client hangs up. */
  readonly gone: AbortSignal;
  /** The owner of the body, in a process that serves several owners; see ByteBudget. */
  readonly owner?: string;
}

/** A whole decoded body, and its share of the budget. */
interface ReceivedBody {
  readonly body: Buffer | undefined;
  /** The body as the client encoded it; undefined if it was not encoded, or if svc does not keep these bytes. */
  readonly encoded?: { readonly bytes: Buffer; readonly encoding: Encoding };
  /** Gives the bytes back to the budget; call it when the handler has finished with the body. */
  readonly release: () => void;
}

const NO_BODY: ReceivedBody = { body: undefined, release: () => {} };

/**
 * Bound on decoded bodies: three of the default limit of 64 MiB; a usual one has 1 MB. With this bound the process
 * stays below 600 MB while 60 bodies of 62 MiB arrive.
 */
const BODIES_BYTES = 192 << 20;

/** Bound on encoded bodies, besides SHORT_BYTES: an incompressible one of 64 MiB. */
const ENCODED_BYTES = 64 << 20;

/** Bytes in both budgets for short bodies, which must not wait while the largest are decoded for seconds. */
const SHORT_BYTES = 8 << 20;

/** A body waits at most `waitMs` for the budget: reading the largest body takes about half a second. */
const BODIES: BudgetLimits = { bytesMax: BODIES_BYTES, waitMs: 2_000, waitingMax: 16 };

/** Deadline of decoding. The largest body takes a second in the slowest decoder, and several on a busy machine. */
const DECODE_MS = 10_000;

/** Largest ratio of decoded to encoded bytes in deflate, which can write 258 bytes in two bits. */
const DEFLATE_RATIO_MAX = 1_032;

/**
 * Returns how many bytes decoding a body may produce, at most `decodedBytesMax`: the decoder refuses more. Throws
 * ProxyError for a zstd body that is malformed or exceeds a limit; see readZstdFrames().
 */
function decodedBound(encoded: Uint8Array, encoding: Encoding, decodedBytesMax: number): number {
  switch (encoding) {
    case 'identity':
      return encoded.length;
    case 'gzip':
    case 'deflate':
      return Math.min(decodedBytesMax, encoded.length * DEFLATE_RATIO_MAX);
    case 'br': // A few bytes of brotli can decode to any length.
      return decodedBytesMax;
    case 'zstd': {
      const frames = readZstdFrames(encoded, decodedBytesMax);
      const bound = frames.reduce((sum, frame) => sum + frame.decodedBytesMax, 0);
      return Math.min(decodedBytesMax, bound);
    }
  }
}

/** Reads a body. If its length is not announced, the lease grows as the bytes arrive. */
function readInto(
  lease: Lease,
  incoming: IncomingMessage,
  expected: ExpectedBody,
): Promise<Buffer | undefined> {
  const isAnnounced = expected.length !== undefined;
  return readBody(incoming, expected, isAnnounced ? undefined : (bytes) => lease.resize(bytes));
}

/**
 * Collects a request body into one Buffer. The server's `requestTimeout` bounds the time. Resolves to undefined if the
 * client hangs up first. Rejects with ProxyError BODY_TOO_LARGE above `wireBytesMax`, and leaves the rest unread.
 * `onBytes` gets the number of bytes so far; an error that it throws ends the reading too.
 */
export function readBody(
  incoming: IncomingMessage,
  { length, wireBytesMax }: Pick<ExpectedBody, 'length' | 'wireBytesMax'>,
  onBytes?: (bytes: number) => void,
): Promise<Buffer | undefined> {
  const bytes = length === undefined ? new GrowingBytes() : new ExpectedBytes(length);
  let chunks = 0;
  return new Promise((resolve, reject) => {
    const onData = (chunk: Buffer): void => {
      try {
        bytes.add(chunk);
        chunks += 1;
        if (bytes.length > wireBytesMax) {
          throw new ProxyError('BODY_TOO_LARGE', 'The body is over the limit.');
        }
        if (chunks > CHUNKS_FREE + bytes.length / CHUNK_BYTES_MIN) {
          throw new ProxyError('BODY_TOO_LARGE', 'The body comes in too many small chunks.');
        }
        onBytes?.(bytes.length);
      } catch (error) {
        // The request object lives until its answer is sent. Remove its listeners, which refer to the bytes.
        incoming.pause();
        incoming.off('data', onData);
        incoming.off('end', onEnd);
        incoming.off('close', onClose);
        reject(error);
      }
    };
    const onEnd = (): void => resolve(bytes.take());
    // After 'end' the promise is settled already, so this has no effect.
    const onClose = (): void => resolve(undefined);
    incoming.on('data', onData);
    incoming.on('end', onEnd);
    incoming.on('close', onClose);
    // A broken connection emits 'error' and then 'close', which is handled above.
    incoming.on('error', () => undefined);
  });
}

/**
 * Bound on the chunks of a body, in addition to one chunk for each CHUNK_BYTES_MIN bytes. A client that sends each
 * token of its JSON as a chunk stays below the bound up to some 150 kB.
 */
const CHUNKS_FREE = 16_384;

interface Bytes {
  readonly length: number;
  add(chunk: Buffer): void;
  /** Returns the bytes. May be called only once, because the bytes then belong to the caller. */
  take(): Buffer;
}

/** Collects a body of announced length by copying each chunk to its final place. */
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

/**
 * Collects a body of unknown length in blocks of its own. It keeps no chunk: a client may send each byte as a chunk,
 * and each chunk would hold some hundred bytes, and the buffer of the socket from which it was cut.
 */
class GrowingBytes implements Bytes {
  readonly #blocks: Buffer[] = [];
  /** The used bytes of the last block. */
  #used = 0;
  length = 0;

  add(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      const block = this.#openBlock();
      const copied = chunk.copy(block, this.#used, at);
      this.#used += copied;
      this.length += copied;
      at += copied;
    }
  }

  take(): Buffer {
    return Buffer.concat(this.#blocks.splice(0), this.length);
  }

  /** Returns the last block, which has room. A new block is not longer than the body so far, except for the first. */
  #openBlock(): Buffer {
    const last = this.#blocks.at(-1);
    if (last !== undefined && this.#used < last.length) return last;
    const block = Buffer.allocUnsafeSlow(
      Math.min(Math.max(this.length, BLOCK_BYTES_MIN), BLOCK_BYTES_MAX),
    );
    this.#blocks.push(block);
    this.#used = 0;
    return block;
  }
}

/** Sizes of a block. The first holds a short body, and the largest wastes little of a long one. */
const BLOCK_BYTES_MIN = 1024;
const BLOCK_BYTES_MAX = 1 << 20;

/**
 * Sends `100 Continue` for the request of `outgoing`. While an earlier answer on the same connection is not finished,
 * Node would send these bytes only after the head of `outgoing`. So this waits until Node gives the socket to it.
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

/**
 * Bounds the bytes of all bodies that a process holds. A body that does not fit waits in a short queue, and is refused
 * if the queue is full or the wait takes too long. A waiting body takes nothing from the budget, so two waiting bodies
 * cannot block each other.
 *
 * With several owners, an owner's first body may take the whole budget. The owner's further bodies must leave part of
 * it free. So a caller that announces many bodies and does not send them cannot block all others.
 */
export class ByteBudget {
  readonly #waitMs: number;
  readonly #waitingMax: number;
  /** Waiting bodies, oldest first. */
  readonly #waiting: Waiting[] = [];
  /** The number of bodies that each owner holds. */
  readonly #held = new Map<string, number>();
  #bytesMax: number;
  #free: number;

  constructor({ bytesMax, waitMs, waitingMax }: BudgetLimits) {
    this.#bytesMax = bytesMax;
    this.#free = bytesMax;
    this.#waitMs = waitMs;
    this.#waitingMax = waitingMax;
  }

  /**
   * Takes bytes from the budget. Rejects with ProxyError TOO_BUSY if they do not become free in time, and with the
   * reason of `signal` if it aborts first. A small body does not wait behind a large one. `owner`: undefined if the
   * budget has a single owner.
   */
  take(bytes: number, signal: AbortSignal, owner?: string): Promise<Lease> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#fits(bytes, owner, 0)) resolve(this.#lease(bytes, owner));
      else if (this.#waiting.length >= this.#waitingMax) throw tooBusy();
      else this.#wait({ bytes, signal, owner, resolve, reject });
    });
  }

  /** Changes the bound. Bodies that are held stay, even if they exceed the new bound. */
  resize(bytesMax: number): void {
    const more = bytesMax - this.#bytesMax;
    this.#bytesMax = bytesMax;
    this.#giveBack(more);
  }

  /**
   * Says whether the bytes fit. `alone`: the number of counted bodies at which this one is the owner's only body: 0
   * before it is counted, and 1 afterwards.
   */
  #fits(bytes: number, owner: string | undefined, alone: number): boolean {
    const isAlone = owner === undefined || (this.#held.get(owner) ?? 0) === alone;
    return bytes <= (isAlone ? this.#free : this.#free - this.#bytesMax * RESERVED_SHARE);
  }

  #lease(bytes: number, owner: string | undefined): Lease {
    this.#free -= bytes;
    this.#count(owner, 1);
    let held = bytes;
    let isReleased = false;
    const resize = (next: number): void => {
      const more = next - held;
      if (more > 0) {
        if (!this.#fits(more, owner, 1)) throw tooBusy();
        this.#free -= more;
      }
      held = next;
      if (more < 0) this.#giveBack(-more);
    };
    const release = (): void => {
      if (!isReleased) this.#count(owner, -1);
      isReleased = true;
      resize(0);
    };
    return { resize, release };
  }

  #count(owner: string | undefined, more: 1 | -1): void {
    if (owner === undefined) return;
    const held = (this.#held.get(owner) ?? 0) + more;
    if (held > 0) this.#held.set(owner, held);
    else this.#held.delete(owner);
  }

  #wait({ bytes, signal, owner, resolve, reject }: Asked): void {
    const leave = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onGone);
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
    };
    const onGone = (): void => {
      leave();
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      leave();
      reject(tooBusy());
    }, this.#waitMs);
    const admit = (): void => {
      leave();
      resolve(this.#lease(bytes, owner));
    };
    const waiting = { bytes, owner, admit };
    signal.addEventListener('abort', onGone, { once: true });
    this.#waiting.push(waiting);
  }

  #giveBack(bytes: number): void {
    this.#free += bytes;
    for (;;) {
      const next = this.#waiting.find(({ bytes: asked, owner }) => this.#fits(asked, owner, 0));
      if (next === undefined) return;
      next.admit();
    }
  }
}

/** Share of the budget that all but an owner's first body leave free: enough for the body of nearly every request. */
const RESERVED_SHARE = 1 / 4;

interface BudgetLimits {
  readonly bytesMax: number;
  /** Milliseconds that a body may wait until its bytes are free. */
  readonly waitMs: number;
  readonly waitingMax: number;
}

interface Waiting extends Pick<Asked, 'bytes' | 'owner'> {
  readonly admit: () => void;
}

interface Asked {
  readonly bytes: number;
  readonly owner: string | undefined;
  readonly signal: AbortSignal;
  readonly resolve: (lease: Lease) => void;
  readonly reject: (reason: unknown) => void;
}

/** The bytes that one body takes from the budget, until it is released. */
export interface Lease {
  /** Changes the number of bytes. If more do not fit, throws ProxyError TOO_BUSY and keeps the earlier number. */
  readonly resize: (bytes: number) => void;
  readonly release: () => void;
}

function tooBusy(): ProxyError {
  return new ProxyError('TOO_BUSY', 'Too many large requests are in progress.');
}
