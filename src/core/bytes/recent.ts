/** A map of bounded size: the least recently used entries are dropped first. */
export class Recent<Key, Value> {
  readonly #max: number;
  readonly #sizeOf: (value: Value) => number;
  #sum = 0;
  readonly #values = new Map<Key, Value>();

  /** `max` bounds the number of entries, or the sum of their sizes if `sizeOf` is given. */
  constructor(max: number, sizeOf: (value: Value) => number = () => 1) {
    this.#max = max;
    this.#sizeOf = sizeOf;
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: Key): Value | undefined {
    const value = this.#values.get(key);
    if (value === undefined) return value;
    this.#values.delete(key);
    this.#values.set(key, value);
    return value;
  }

  /** Returns a value and does not count that as a use. `get` is slower, because it moves the entry to the end. */
  peek(key: Key): Value | undefined {
    return this.#values.get(key);
  }

  set(key: Key, value: Value): void {
    this.delete(key);
    this.#values.set(key, value);
    this.#sum += this.#sizeOf(value);
    if (this.#sum <= this.#max) return;
    for (const oldest of this.#values.keys()) {
      this.delete(oldest);
      if (this.#sum <= this.#max) return;
    }
  }

  /** Returns the values, from the least to the most recently used. */
  values(): readonly Value[] {
    return [...this.#values.values()];
  }

  has(key: Key): boolean {
    return this.#values.has(key);
  }

  delete(key: Key): void {
    const value = this.#values.get(key);
    if (value === undefined) return;
    this.#sum -= this.#sizeOf(value);
    this.#values.delete(key);
  }

  clear(): void {
    this.#sum = 0;
    this.#values.clear();
  }
}
