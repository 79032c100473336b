/** The elements by a key, in the order in which the keys come first. Node 20 has no Map.groupBy. */
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
