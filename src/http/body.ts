import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExpectedBody } from '../core/http/http-form.ts';
import { ProxyError } from '../core/errors.ts';

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
