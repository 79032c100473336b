import { createHash, type Hash } from 'node:crypto';
import type { AnswerWatcher } from './relay.ts';

/** Hashes of the bodies of one request, in hex. A receipt tells them; the texts are nowhere. */
export class BodyHashes {
  readonly #request: Uint8Array | undefined;
  /** The request's body as it is forwarded where svc changes nothing else. */
  #own: Uint8Array | undefined;
  #requestHash: string | undefined;
  #forwardedHash: string | undefined;
  #response: Hash | undefined;
  #responseHash: string | undefined;

  constructor(request: Uint8Array | undefined) {
    this.#request = request;
    this.#own = request;
  }

  /** The body has a model now that it lacked. */
  routed(own: Uint8Array | undefined): void {
    this.#own = own;
  }

  /** The body that was sent, in pieces; undefined: the request's own. */
  forwarded(pieces: readonly Uint8Array[] | undefined): void {
    this.#requestHash ??= hashOf(this.#request);
    if (pieces !== undefined) this.#forwardedHash = sha256(pieces);
    else this.#forwardedHash = this.#own === this.#request ? this.#requestHash : hashOf(this.#own);
  }

  /** Hashes an answer beside a watcher, also where the watcher fails. */
  watching(inner: AnswerWatcher | undefined): AnswerWatcher {
    const hash = createHash('sha256');
    this.#response = hash;
    return new HashingWatch(hash, inner);
  }

  /** The hashes so far; to be called when the relay is over. */
  known(): KnownHashes {
    this.#responseHash ??= this.#response?.digest('hex');
    return {
      request: this.#requestHash,
      forwarded: this.#forwardedHash,
      response: this.#responseHash,
    };
  }
}

export interface KnownHashes {
  readonly request: string | undefined;
  readonly forwarded: string | undefined;
  readonly response: string | undefined;
}

function hashOf(body: Uint8Array | undefined): string | undefined {
  return body === undefined ? undefined : sha256([body]);
}

function sha256(pieces: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}

class HashingWatch implements AnswerWatcher {
  readonly #hash: Hash;
  #inner: AnswerWatcher | undefined;

  constructor(hash: Hash, inner: AnswerWatcher | undefined) {
    this.#hash = hash;
    this.#inner = inner;
  }

  data(chunk: Uint8Array): void {
    this.#hash.update(chunk);
    this.#ask((inner) => inner.data(chunk), undefined);
  }

  isTerminal(chunk: Uint8Array): boolean {
    return this.#ask((inner) => inner.isTerminal(chunk), false);
  }

  beforeLast(): boolean {
    return this.#ask((inner) => inner.beforeLast(), true);
  }

  /** The relay drops a watcher that throws, and would drop the hash with it. */
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
