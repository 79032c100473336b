import type { RequestRow } from '../ports/request-log.ts';

interface OpenRequest {
  /** Returns the row as far as it is known. `end` is 'open', and `status` is 0 until the answer's head arrives. */
  soFar(): RequestRow;
}

/** Called with the row of each finished request, and without a row when the set of open requests changes. */
type Watcher = (finished?: RequestRow) => void;

/** The requests that are being answered: for the live views, for `svc stop`, and to know when the proxy is idle. */
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

  /** Registers a watcher. The returned function removes it. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #tell(row?: RequestRow): void {
    for (const watcher of this.#watchers) watcher(row);
  }

  /** Returns the rows of the open requests, oldest first. */
  rows(): readonly RequestRow[] {
    return [...this.#requests].map((request) => request.soFar());
  }
}

/**
 * A request with its whole bodies, as received and as sent. svc keeps the last ones in memory, if the setting
 * `proxy.keepRequests` asks for it.
 */
interface KeptRequest {
  readonly id: string;
  /** The client's body, decoded. */
  readonly sent: Buffer;
  /** The pieces of the changed body; undefined if the client's own bytes were sent. */
  readonly went: readonly Uint8Array[] | undefined;
}

/** Bound on the bytes of all kept requests. Above it the oldest are dropped; a longer request is not kept. */
const BYTES_MAX = 64 << 20;

export class KeptRequests {
  #kept: readonly KeptRequest[] = [];

  add(request: KeptRequest, most: number): void {
    if (sizeOf(request) > BYTES_MAX) return;
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

  clear(): void {
    this.#kept = [];
  }
}

function sizeOf({ sent, went = [] }: KeptRequest): number {
  return sent.length + went.reduce((sum, piece) => sum + piece.length, 0);
}
