/** The conditions of a query, all of which must hold, and the values of their question marks in order. */
export class Conditions {
  readonly values: (string | number)[] = [];
  readonly #all: string[] = [];

  require(condition: string): void {
    this.#all.push(condition);
  }

  /** A filter without this value does not ask for it. */
  add(condition: string, value: string | number | undefined): void {
    if (value === undefined) return;
    this.require(condition);
    this.values.push(value);
  }

  /** '' where everything is asked for. */
  get where(): string {
    return this.#all.length === 0 ? '' : `WHERE ${this.#all.join(' AND ')}`;
  }
}
