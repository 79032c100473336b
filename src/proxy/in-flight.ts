import type { RequestRow } from '../ports/request-log.ts';
import type { RequestRecord } from './request-record.ts';

/** The requests that are being answered, for whoever watches the proxy. */
export class InFlight {
  readonly #records = new Set<RequestRecord>();

  add(record: RequestRecord): void {
    this.#records.add(record);
  }

  delete(record: RequestRecord): void {
    this.#records.delete(record);
  }

  /** Oldest first, as far as each is known now; `end` is 'open', `status` 0 before the answer's head. */
  rows(): readonly RequestRow[] {
    return [...this.#records].map((record) => record.soFar());
  }
}
