import type { RequestRow } from '../../ports/request-log.ts';
import type { InFlight } from '../../proxy/in-flight.ts';
import type { EventSource } from './event-streams.ts';

/** Requests as they come and end, for the open pages. It watches only while a page is open. */

/** More ended in a quarter of a second than a page shows: the newest are told. */
const FINISHED_MAX = 100;
/** An open request's state changes without a word; a page that shows it asks so often. */
const LOOK_MS = 1000;

/** A row of a list: what became of each item is for the view of one request, and most of its size. */
export function listed(row: RequestRow): RequestRow {
  const { items: _, elidedRefs: __, ...rest } = row;
  return rest;
}

export class LiveRequests implements EventSource {
  readonly #inFlight: InFlight;
  #finished: RequestRow[] = [];
  #hasNews = false;

  constructor(inFlight: InFlight) {
    this.#inFlight = inFlight;
  }

  open(): readonly RequestRow[] {
    return this.#inFlight.rows().map(listed);
  }

  news(): object | undefined {
    if (!this.#hasNews) return undefined;
    this.#hasNews = false;
    return { open: this.open(), finished: this.#finished.splice(0) };
  }

  watch(notify: () => void): () => void {
    const unwatch = this.#inFlight.watch((row) => {
      if (row !== undefined) this.#finished = [...this.#finished, listed(row)].slice(-FINISHED_MAX);
      this.#hasNews = true;
      notify();
    });
    const timer = setInterval(() => {
      if (this.open().length === 0) return;
      this.#hasNews = true;
      notify();
    }, LOOK_MS).unref();
    return () => {
      clearInterval(timer);
      unwatch();
    };
  }
}
