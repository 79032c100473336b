/**
 * Caches a result for one turn of the event loop. One request checks the files several times in a
 * row without waiting for a thread, a socket or a timer in between, so one check is enough.
 */
export class OnceATurn<Seen> {
  readonly #look: () => Seen;
  #seen: { readonly value: Seen } | undefined;
  readonly #forget = (): void => {
    this.#seen = undefined;
  };

  constructor(look: () => Seen) {
    this.#look = look;
  }

  get(): Seen {
    if (this.#seen === undefined) {
      this.#seen = { value: this.#look() };
      // Runs once no promise of this turn has anything left to do.
      process.nextTick(this.#forget);
    }
    return this.#seen.value;
  }
}
