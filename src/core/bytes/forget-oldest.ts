/** A collection with an order: a Map or a Set. */
interface Remembered<Key> {
  readonly size: number;
  keys(): IterableIterator<Key>;
  delete(key: Key): boolean;
}

/**
 * Bounds a collection: removes the oldest entries until at most `max` are left. A caller that wants
 * the order of last use takes an entry out before it puts it in again.
 */
export function forgetOldest<Key>(remembered: Remembered<Key>, max: number): void {
  if (remembered.size <= max) return;
  for (const oldest of remembered.keys()) {
    remembered.delete(oldest);
    if (remembered.size <= max) return;
  }
}
