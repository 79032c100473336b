interface BatchLimits<One> {
  readonly countMax: number;
  readonly sizeMax: number;
  readonly sizeOf: (one: One) => number;
}

/** Splits a list into batches within both limits. An element above `sizeMax` becomes a batch of its own. */
export function* batchesOf<One>(
  list: Iterable<One>,
  { countMax, sizeMax, sizeOf }: BatchLimits<One>,
): Generator<readonly One[]> {
  let batch: One[] = [];
  let size = 0;
  for (const one of list) {
    const more = sizeOf(one);
    if (batch.length === countMax || (batch.length > 0 && size + more > sizeMax)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(one);
    size += more;
  }
  if (batch.length > 0) yield batch;
}

/** Cuts a list into pieces of `most` elements; the last piece may have fewer. */
export function chunksOf<One>(list: readonly One[], most: number): readonly (readonly One[])[] {
  const count = Math.ceil(list.length / most);
  return Array.from({ length: count }, (_, at) => list.slice(at * most, (at + 1) * most));
}

/** Groups the elements by a key, in the order in which the keys first occur. Node 20 has no Map.groupBy. */
export function groupBy<One>(
  list: Iterable<One>,
  keyOf: (one: One) => string,
): ReadonlyMap<string, readonly One[]> {
  const groups = new Map<string, One[]>();
  for (const one of list) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups;
}
