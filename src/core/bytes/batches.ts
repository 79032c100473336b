export interface BatchLimits<One> {
  readonly countMax: number;
  readonly sizeMax: number;
  readonly sizeOf: (one: One) => number;
}

/** Runs of a list, each within both limits. An element that is too large alone is a run of its own. */
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
