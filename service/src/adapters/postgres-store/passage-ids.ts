import { PASSAGES_PER_SPACE } from '../../../../src/adapters/store/schema.ts';

/** Rows count within their space: the number of a space and the number in it make an id, as in a file. */

export function idOf(space: number, n: number): number {
  return space * PASSAGES_PER_SPACE + n;
}

export function placeOf(id: number): { space: number; n: number } {
  return { space: Math.floor(id / PASSAGES_PER_SPACE), n: id % PASSAGES_PER_SPACE };
}

/** Numbers of spaces, and numbers in them. */
export function placesOf(ids: readonly number[]): [number[], number[]] {
  const places = ids.map(placeOf);
  return [places.map(({ space }) => space), places.map(({ n }) => n)];
}
