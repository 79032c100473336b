import { signal } from '@preact/signals';
import { SpaceNames } from '../../core/request/space-names.ts';

/** The spaces that the page has seen so far; with a memory service it never has the whole list. */
const met = new Set<string>();
const spaces = new SpaceNames(met);
/** Renewed when a space keeps its whole name, because one already shown may then need its whole name too. */
const names = signal({ spaces });

/** Returns a space's short name, by the same rule as in the commands. */
export function shortSpace(space: string): string {
  if (!met.has(space)) {
    met.add(space);
    spaces.add(space);
    if (spaces.of(space) === space) names.value = { spaces };
  }
  return names.value.spaces.wordsOf(space);
}
