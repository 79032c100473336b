import type { RequestRow } from '../ports/request-log.ts';

/** A request that is being answered. */
export interface OpenRequest {
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
