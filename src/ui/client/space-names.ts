import { signal } from '@preact/signals';
import { SpaceNames } from '../../core/request/space-names.ts';

/** The spaces that the page has met: it never has the whole list with a memory service. */
const met = new Set<string>();
const spaces = new SpaceNames(met);
/** Renewed when a space keeps its whole name: one that is drawn already may then need its own too. */
const names = signal({ spaces });

/** The name that a person reads, by the same rule as in the commands. */
export function shortSpace(space: string): string {
  if (!met.has(space)) {
    met.add(space);
    spaces.add(space);
    if (spaces.of(space) === space) names.value = { spaces };
  }
  return names.value.spaces.wordsOf(space);
}
