/**
 * Digests of texts, by the space that they belong to. A request asks about a hundred of them: to build a
 * key of space and digest for each would cost more than to look it up.
 */
export class KnownTexts {
  readonly #max: number;
  readonly #bySpace = new Map<string, Set<string>>();
  #size = 0;

  /** `max`: digests of all spaces together. */
  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  has(space: string, digest: string): boolean {
    return this.#bySpace.get(space)?.has(digest) === true;
  }

  /** Beyond the limit, the oldest digest of the oldest space makes way. */
  add(space: string, digest: string): void {
    const digests = this.#bySpace.get(space) ?? new Set();
    this.#bySpace.set(space, digests);
    this.#size -= digests.size;
    digests.add(digest);
    this.#size += digests.size;
    if (this.#size > this.#max) this.#forgetOldest();
  }

  delete(space: string, digest: string): void {
    const digests = this.#bySpace.get(space);
    if (digests?.delete(digest) !== true) return;
    this.#size -= 1;
    if (digests.size === 0) this.#bySpace.delete(space);
  }

  clear(): void {
    this.#bySpace.clear();
    this.#size = 0;
  }

  #forgetOldest(): void {
    for (const [space, digests] of this.#bySpace) {
      for (const oldest of digests) {
        this.delete(space, oldest);
        return;
      }
    }
  }
}
