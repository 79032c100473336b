import type { BodyWatch, KnownHashes } from '../../../../src/proxy/dependencies.ts';
import { createHash, type Hash, hash } from 'node:crypto';

/** Hashes the bodies of one request for its receipt: SHA-256 in hex. */
export class BodyHashes implements BodyWatch {
  readonly #request: Uint8Array | undefined;
  /** The request's body, with the default model added if the client named none. */
  #own: Uint8Array | undefined;
  #forwarded: { readonly pieces: readonly Uint8Array[] | undefined } | undefined;
  #requestHash: string | undefined;
  #forwardedHash: string | undefined;
  #response: Hash | undefined;
  #responseHash: string | undefined;

  constructor(request: Uint8Array | undefined) {
    this.#request = request;
    this.#own = request;
  }

  /** Sets the body after routing, to which the default model may have been added. */
  routed(own: Uint8Array | undefined): void {
    this.#own = own;
  }

  /** Sets the pieces of the body that was sent. Undefined means the body of routed(), or else the request's own. */
  forwarded(pieces: readonly Uint8Array[] | undefined): void {
    this.#forwarded = { pieces };
  }

  /** Hashes the request's and the forwarded body once, after forwarded() was called. A megabyte takes a millisecond. */
  #count(): void {
    if (this.#forwarded === undefined) return;
    const { pieces } = this.#forwarded;
    this.#forwarded = undefined;
    this.#requestHash ??= hashOf(this.#request);
    if (pieces !== undefined) this.#forwardedHash = sha256(pieces);
    else this.#forwardedHash = this.#own === this.#request ? this.#requestHash : hashOf(this.#own);
  }

  answering(): (chunk: Uint8Array) => void {
    const response = createHash('sha256');
    this.#response = response;
    return (chunk) => void response.update(chunk);
  }

  /**
   * Returns the hashes so far. The first call after answering() ends the hash of the answer, so make that call after
   * the relay has ended.
   */
  known(): KnownHashes {
    this.#count();
    this.#responseHash ??= this.#response?.digest('hex');
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
