import { signal } from '@preact/signals';
import { SpaceNames } from '../../core/request/space-names.ts';

/** The spaces that the page has seen so far. A memory service does not list all of them. */
const met = new Set<string>();
const spaces = new SpaceNames(met);
/** Set again if a new space has the short name of a shown one, because that is then shown with its whole name. */
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
