import { refusalAddresses, refusalEntries } from '../core/ledger/entries.ts';
import { newestPrompt } from '../core/recall/injections.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { Reading } from './read-request.ts';

/** Remembers shortened requests that a provider refused. */

/** So long the ledger itself believes that there is no entry: another process may write one. */
const UNREFUSED_MS = 60_000;

/** The refusals of shortened requests, which the ledger keeps. */
export class ShorteningRefusals {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  /** Counts those that this process has recorded: they hold for forks too. */
  #recorded = 0;

  constructor({ ledger, clock }: { readonly ledger: Ledger; readonly clock: Clock }) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /** Where refusals that hold for this request are found; none where a request of the same prompt found none. */
  addresses(reading: Reading): ReturnType<typeof refusalAddresses> {
    const { view, place } = reading;
    return this.#knowsNone(reading) ? [] : refusalAddresses(view, place, 'shortening');
  }

  #knowsNone({ view, state: { unrefused } }: Reading): boolean {
    return (
      !this.#ledger.isShared &&
      unrefused !== undefined &&
      unrefused.recorded === this.#recorded &&
      unrefused.until > this.#clock.monotonic() &&
      unrefused.prompt === newestPrompt(view)?.fingerprint
    );
  }

  /** The ledger had no refusal of any prompt so far. */
  noteNone({ view, state }: Reading): void {
    const prompt = newestPrompt(view)?.fingerprint;
    const until = this.#clock.monotonic() + UNREFUSED_MS;
    if (prompt !== undefined) state.unrefused = { prompt, recorded: this.#recorded, until };
  }

  /** The conversation is not shortened for an hour. */
  async record({ view, place }: Reading): Promise<void> {
    this.#recorded += 1;
    const addresses = refusalAddresses(view, place, 'shortening');
    await this.#ledger.record(refusalEntries(addresses, this.#clock.now()));
  }
}
