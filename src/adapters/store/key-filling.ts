import type { StateReader } from './shared-state.ts';

/** Reading 5,000 keys takes 3 ms of the store's thread; another process may write all the time. */
const FILLING_MS = 1000;

/** Asks the filter of the ledger's keys, and has it filled again after another process has written. */
export class KeyFilling {
  readonly #state: Pick<StateReader, 'mayHold'>;
  readonly #fillSome: () => Promise<boolean>;
  #begunAt = -Infinity;

  /** `fillSome`: has the store read some more keys. False when there are no more. */
  constructor(state: Pick<StateReader, 'mayHold'>, fillSome: () => Promise<boolean>) {
    this.#state = state;
    this.#fillSome = fillSome;
  }

  mayHold(keys: readonly string[]): readonly string[] | undefined {
    const asked = this.#state.mayHold(keys);
    const isDue = asked === undefined && performance.now() - this.#begunAt > FILLING_MS;
    if (isDue) {
      this.#begunAt = performance.now();
      void this.#fill();
    }
    return asked;
  }

  async #fill(): Promise<void> {
    try {
      // oxlint-disable-next-line no-await-in-loop -- Questions are answered between the parts.
      while (await this.#fillSome());
    } catch {
      // Without a filter the table is asked.
    }
  }
}
