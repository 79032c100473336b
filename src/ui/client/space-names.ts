import { signal } from '@preact/signals';
import { SpaceNames } from '../../core/request/space-names.ts';

/** The spaces that the page has shown so far. It cannot ask for all, because a memory service does not list them. */
const met = new Set<string>();
const spaces = new SpaceNames(met);
/** Changes when a new space has the same short name as a shown one, so that both are drawn with their whole names. */
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
