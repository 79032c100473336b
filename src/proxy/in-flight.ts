import type { RequestRow } from '../ports/request-log.ts';

/** A request that is being answered. */
interface OpenRequest {
  /** The row with the facts known now; `end` is 'open', `status` 0 before the answer's head. */
  soFar(): RequestRow;
}

/** Called with a finished request, or with nothing when one has come or gone. */
type Watcher = (finished?: RequestRow) => void;

/** The requests that are being answered, for the live view of the proxy. */
export class InFlight {
  readonly #requests = new Set<OpenRequest>();
  readonly #watchers = new Set<Watcher>();

  add(request: OpenRequest): void {
    this.#requests.add(request);
    this.#tell();
  }

  delete(request: OpenRequest): void {
    this.#requests.delete(request);
    this.#tell();
  }

  finished(row: RequestRow): void {
    this.#tell(row);
  }

  /** Until the returned function is called. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #tell(row?: RequestRow): void {
    for (const watcher of this.#watchers) watcher(row);
  }

  /** Oldest first. */
  rows(): readonly RequestRow[] {
    return [...this.#requests].map((request) => request.soFar());
  }
}

/**
 * The last requests whole, as they came and as they went out: for the person who asked for it
 * (`proxy.keepRequests`). They are in memory only, and go with the process.
 */
interface KeptRequest {
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
