import type { RequestRow } from '../ports/request-log.ts';

/** A request that is being answered. */
export interface OpenRequest {
  /** The row with the facts known now; `end` is 'open', `status` 0 before the answer's head. */
  soFar(): RequestRow;
}

/** The requests that are being answered, for the live view of the proxy. */
export class InFlight {
  readonly #requests = new Set<OpenRequest>();

  add(request: OpenRequest): void {
    this.#requests.add(request);
  }

  delete(request: OpenRequest): void {
    this.#requests.delete(request);
  }

  /** Oldest first. */
  rows(): readonly RequestRow[] {
    return [...this.#requests].map((request) => request.soFar());
  }
}
