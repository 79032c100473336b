/** Numbers words, so that texts can be compared quickly: no letters, no hashing. */
export class Vocabulary {
  readonly #numbers = new Map<string, number>();

  get size(): number {
    return this.#numbers.size;
  }

  /** Returns the number of a word, from 0 on. A new word gets the next number. */
  numberOf(word: string): number {
    const known = this.#numbers.get(word);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(word, number);
    return number;
  }
}
