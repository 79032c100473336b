/** What remembers in an order: a Map or a Set. */
interface Remembered<Key> {
  readonly size: number;
  keys(): IterableIterator<Key>;
  delete(key: Key): boolean;
}

/**
 * Holds what a process remembers within its bound: what has stood there longest goes, until there are
 * at most `max`. Whoever wants the order of last use takes an entry out before it is put in again.
 */
export function forgetOldest<Key>(remembered: Remembered<Key>, max: number): void {
  if (remembered.size <= max) return;
  for (const oldest of remembered.keys()) {
    remembered.delete(oldest);
    if (remembered.size <= max) return;
  }
}
