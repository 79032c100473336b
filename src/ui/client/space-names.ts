/**
 * Short names of projects. A space ends with a hash of the project's address; the page shows it only
 * where two projects that it has met share the name in front of it.
 */

/** The spaces that the page has met, by their short name. */
const met = new Map<string, Set<string>>();

export function shortSpace(space: string): string {
  const short = space.replace(/-[0-9a-f]{10}$/, '');
  if (short === space || short === '') return space;
  const alike = met.get(short) ?? new Set();
  met.set(short, alike.add(space));
  return alike.size === 1 ? short : space;
}
