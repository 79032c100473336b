/**
 * Looks at most once in each turn of the event loop, and remembers what it saw until the turn is over.
 * One request asks several times in a row how the files stand, and nothing that it awaits lies between:
 * no answer of a thread, a socket or a timer has come in.
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
