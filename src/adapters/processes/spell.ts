/** A time in which something happens again and again: from the first time until it has not for a while. */
export class Spell {
  readonly #lastsMs: number;
  readonly #changed: (isOn: boolean) => void;
  #untilOver: NodeJS.Timeout | undefined;

  /** `lastsMs`: after the last time. `changed` is called when the spell begins, and when it is over. */
  constructor(lastsMs: number, changed: (isOn: boolean) => void) {
    this.#lastsMs = lastsMs;
    this.#changed = changed;
  }

  get isOn(): boolean {
    return this.#untilOver !== undefined;
  }

  /** To be called each time that it happens. */
  note(): void {
    if (this.#untilOver !== undefined) {
      this.#untilOver.refresh();
      return;
    }
    this.#untilOver = setTimeout(() => {
      this.#untilOver = undefined;
      this.#changed(false);
    }, this.#lastsMs).unref();
    this.#changed(true);
  }
}
