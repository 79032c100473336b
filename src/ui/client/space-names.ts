import { signal } from '@preact/signals';
import { SpaceNames } from '../../core/request/space-names.ts';

/**
 * The spaces that the page has seen so far. It cannot ask for all of them, because a memory service does not list them.
 */
const met = new Set<string>();
const spaces = new SpaceNames(met);
/**
 * Set again if the short name of a new space would not be unique, because a name that is already shown may then change
 * too.
 */
const names = signal({ spaces });

/** Returns the short name of a space, as the commands print it. */
export function shortSpace(space: string): string {
  if (!met.has(space)) {
    met.add(space);
    spaces.add(space);
    if (spaces.of(space) === space) names.value = { spaces };
  }
  return names.value.spaces.wordsOf(space);
}
