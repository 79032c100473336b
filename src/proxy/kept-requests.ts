/**
 * The last requests whole, as they came and as they went out: for the person who asked for it
 * (`proxy.keepRequests`). They are in memory only, and go with the process.
 */
export interface KeptRequest {
  readonly id: string;
  readonly sent: Buffer;
  /** The pieces of the changed body; undefined when the client's own bytes went out. */
  readonly went: readonly Uint8Array[] | undefined;
}

/** All of them together; a longer one is not kept. */
const BYTES_MAX = 64 << 20;

export class KeptRequests {
  #kept: readonly KeptRequest[] = [];

  add(request: KeptRequest, most: number): void {
    const all = [...this.#kept, request].slice(-most);
    let bytes = 0;
    const newest = all.toReversed().filter((one) => {
      bytes += sizeOf(one);
      return bytes <= BYTES_MAX;
    });
    this.#kept = newest.toReversed();
  }

  find(id: string): KeptRequest | undefined {
    return this.#kept.find((one) => one.id === id);
  }

  /** The setting was turned off. */
  clear(): void {
    this.#kept = [];
  }
}

function sizeOf({ sent, went = [] }: KeptRequest): number {
  return sent.length + went.reduce((sum, piece) => sum + piece.length, 0);
}
