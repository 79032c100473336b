import type { AnswerWatcher, BodyWatch, KnownHashes } from '../../../../src/proxy/dependencies.ts';
import { createHash, hash } from 'node:crypto';
import type { Completes } from '../../../../src/core/answer/answer-reader.ts';

/** Hashes the bodies of one request for its receipt: SHA-256 in hex. */
export class BodyHashes implements BodyWatch {
  readonly #request: Uint8Array | undefined;
  /** The request's body, with the default model added if the client named none. */
  #own: Uint8Array | undefined;
  #forwarded: { readonly pieces: readonly Uint8Array[] | undefined } | undefined;
  #requestHash: string | undefined;
  #forwardedHash: string | undefined;
  #response: HashingWatch | undefined;
  #responseHash: string | undefined;

  constructor(request: Uint8Array | undefined) {
    this.#request = request;
    this.#own = request;
  }

  /** Sets the body to which the default model was added. */
  routed(own: Uint8Array | undefined): void {
    this.#own = own;
  }

  /** Sets the body that was sent, in pieces. Undefined: the one of routed(), or else the request's own. */
  forwarded(pieces: readonly Uint8Array[] | undefined): void {
    this.#forwarded = { pieces };
  }

  /** Hashes the request's and the forwarded body once. A megabyte takes a millisecond. */
  #count(): void {
    if (this.#forwarded === undefined) return;
    const { pieces } = this.#forwarded;
    this.#forwarded = undefined;
    this.#requestHash ??= hashOf(this.#request);
    if (pieces !== undefined) this.#forwardedHash = sha256(pieces);
    else this.#forwardedHash = this.#own === this.#request ? this.#requestHash : hashOf(this.#own);
  }

  /** Wraps a watcher so that the answer is hashed too, even if the watcher fails. */
  watching(inner: AnswerWatcher | undefined): AnswerWatcher {
    this.#response = new HashingWatch(inner);
    return this.#response;
  }

  /** Returns the hashes so far. Call it when the relay has ended. */
  known(): KnownHashes {
    this.#count();
    this.#responseHash ??= this.#response?.digest();
    return {
      request: this.#requestHash,
      forwarded: this.#forwardedHash,
      response: this.#responseHash,
    };
  }
}

function hashOf(body: Uint8Array | undefined): string | undefined {
  return body === undefined ? undefined : hash('sha256', body, 'hex');
}

function sha256(pieces: readonly Uint8Array[]): string {
  const sum = createHash('sha256');
  for (const piece of pieces) sum.update(piece);
  return sum.digest('hex');
}

class HashingWatch implements AnswerWatcher {
  readonly #hash = createHash('sha256');
  #inner: AnswerWatcher | undefined;

  constructor(inner: AnswerWatcher | undefined) {
    this.#inner = inner;
  }

  /** Returns the hash of all bytes. Call it once. */
  digest(): string {
    return this.#hash.digest('hex');
  }

  data(chunk: Uint8Array): void {
    this.#hash.update(chunk);
    this.#ask((inner) => inner.data(chunk), undefined);
  }

  completes(chunk: Uint8Array): Completes {
    return this.#ask<Completes>((inner) => inner.completes(chunk), 'nothing');
  }

  beforeThought(): void {
    this.#ask((inner) => inner.beforeThought(), undefined);
  }

  beforeLast(): boolean {
    return this.#ask((inner) => inner.beforeLast(), true);
  }

  /** Asks the inner watcher and catches its errors: otherwise the relay would drop this watcher with the hash. */
  #ask<Result>(question: (inner: AnswerWatcher) => Result, otherwise: Result): Result {
    if (this.#inner === undefined) return otherwise;
    try {
      return question(this.#inner);
    } catch {
      this.#inner = undefined;
      return otherwise;
    }
  }
}
