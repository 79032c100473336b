/**
 * The names by which a person reads and types spaces: `shop` for `project/shop-0123456789`. A project
 * keeps its whole name where another known space has the same short one. Programs get whole names.
 */

/**
 * Where texts of clients go whose folder svc did not understand. Nothing recalls from there; a person
 * may merge it into a project.
 */
export const UNPLACED_SPACES = 'unplaced/';

export function isUnplaced(space: string): boolean {
  return space.startsWith(UNPLACED_SPACES);
}

const PROJECT = /^project\/(.+)-[0-9a-f]{10}$/;

export class SpaceNames {
  /** The known spaces by their short name; a space that has none is there by its own name. */
  readonly #spaces = new Map<string, Set<string>>();

  constructor(known: Iterable<string>) {
    for (const space of known) this.add(space);
  }

  add(space: string): void {
    const short = shortOf(space);
    this.#spaces.set(short, (this.#spaces.get(short) ?? new Set()).add(space));
  }

  /** Names a space in a report about requests. Texts without a project get words, which no command takes as a name. */
  wordsOf(space: string): string {
    if (!isUnplaced(space)) return this.of(space);
    return `no project (${space.slice(UNPLACED_SPACES.length)})`;
  }

  /** What a person reads. */
  of(space: string): string {
    const short = shortOf(space);
    const others = [...(this.#spaces.get(short) ?? [])].filter((one) => one !== space);
    return others.length === 0 ? short : space;
  }

  /** The spaces that a person may mean: none, if no known space has this name. */
  find(typed: string): readonly string[] {
    const spaces = [...(this.#spaces.get(typed) ?? [])];
    return spaces.includes(typed) ? [typed] : spaces;
  }
}

function shortOf(space: string): string {
  return PROJECT.exec(space)?.[1] ?? space;
}
