import { signal } from '@preact/signals';
import { SpaceNames } from '../../core/request/space-names.ts';

/** The spaces that the page has seen so far. With a memory service the page never gets the whole list. */
const met = new Set<string>();
const spaces = new SpaceNames(met);
/** Set again when a space keeps its whole name, because a name that is already shown may then change. */
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
