/**
 * Tells writes when no request waits for its first byte. A write takes the store's thread and a processor
 * for some milliseconds, and a recall that arrives meanwhile waits for it. A journal
 * holds the same already, so a write can wait.
 */

/** A client that has just been answered often asks again at once. */
const QUIET_MS = 3;
/** A capture must be recallable after 50 ms: it is gathered for 10, and a commit takes up to 10. */
const LATEST_MS = 20;

export class QuietTime {
  #isBusy = false;
  #since = -Infinity;

  /** Requests are in hand from now on, or none is. */
  busy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    this.#since = performance.now();
  }

  /** Runs the write once no request has been in hand for a while, and soon in any case. */
  async run<Result>(write: () => Promise<Result>): Promise<Result> {
    await this.#wait();
    return write();
  }

  async #wait(): Promise<void> {
    const latest = performance.now() + LATEST_MS;
    for (;;) {
      const now = performance.now();
      const isQuiet = !this.#isBusy && now - this.#since >= QUIET_MS;
      if (isQuiet || now >= latest) return;
      // oxlint-disable-next-line no-await-in-loop -- It looks again after a pause.
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    }
  }
}
