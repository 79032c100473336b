/**
 * The short names of spaces, as users read and type them: `shop` for `project/shop-0123456789`. If two known spaces
 * would have the same short name, users see their whole names. Output for programs has whole names.
 */

/**
 * The prefix of spaces for texts whose project svc could not identify. svc recalls nothing from them. A user may merge
 * such a space into a project.
 */
export const UNPLACED_SPACES = 'unplaced/';

export function isUnplaced(space: string): boolean {
  return space.startsWith(UNPLACED_SPACES);
}

const PROJECT = /^project\/(.+)-[0-9a-f]{10}$/;

export class SpaceNames {
  /** The known spaces by short name, or by whole name if that has no short form. */
  readonly #spaces = new Map<string, Set<string>>();

  constructor(known: Iterable<string>) {
    for (const space of known) this.add(space);
  }

  add(space: string): void {
    const short = shortOf(space);
    this.#spaces.set(short, (this.#spaces.get(short) ?? new Set()).add(space));
  }

  /** Names a space in a report. Instead of an unplaced space it writes "no project (…)", which no command accepts. */
  wordsOf(space: string): string {
    if (!isUnplaced(space)) return this.of(space);
    return `no project (${space.slice(UNPLACED_SPACES.length)})`;
  }

  /** Returns the name that users see. */
  of(space: string): string {
    const short = shortOf(space);
    const others = [...(this.#spaces.get(short) ?? [])].filter((one) => one !== space);
    return others.length === 0 ? short : space;
  }

  /** Returns the spaces that a typed name may mean; none if no known space has it. */
  find(typed: string): readonly string[] {
    const spaces = [...(this.#spaces.get(typed) ?? [])];
    return spaces.includes(typed) ? [typed] : spaces;
  }
}

function shortOf(space: string): string {
  return PROJECT.exec(space)?.[1] ?? space;
}
