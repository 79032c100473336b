import { SpaceNames } from '../../core/request/space-names.ts';

/** The spaces that the page has met: it never has the whole list with a memory service. */
const met = new Set<string>();
let names = new SpaceNames(met);

/** The name that a person reads, by the same rule as in the commands. */
export function shortSpace(space: string): string {
  if (!met.has(space)) names = new SpaceNames(met.add(space));
  return names.of(space);
}
