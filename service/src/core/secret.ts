/** A secret that nothing prints by accident: it reads as `[secret]` wherever it is not asked for. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The one way to the value. Call it where the value is used, and keep no copy. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  /** The hook of Node's own printing, which would show the fields of any other object. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}
