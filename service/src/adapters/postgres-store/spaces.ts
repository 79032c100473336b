import type { SpaceChoice, SpaceState } from '../../ports/service-store.ts';
import { SPACES_MAX } from '../../../../src/adapters/store/schema.ts';
import type { Rows } from './rows.ts';
import { MEMORY } from './statements/memory.ts';

/** Spaces of one tenant with their generation and commit sequence. */

interface StateRow {
  readonly epoch: string;
  readonly id: number | null;
  readonly counter: number | null;
  readonly seq: number | null;
  readonly records: number | null;
}

/** A space whose row this transaction has locked, so no other capture or purge runs in it. */
export interface LockedSpace extends StateRow {
  readonly id: number;
  readonly counter: number;
  readonly seq: number;
  readonly records: number;
  readonly bytes: number;
  readonly next_passage: number;
  readonly next_text: number;
  readonly next_conversation: number;
}

export class Spaces {
  readonly #rows: Rows;
  readonly #tenant: string;

  constructor(rows: Rows, tenant: string) {
    this.#rows = rows;
    this.#tenant = tenant;
  }

  /** The epoch is read each time: after a restore no node may tell the one before. */
  async state(space: string): Promise<SpaceState & { readonly id: number | undefined }> {
    const row = await this.#rows.get<StateRow>(MEMORY.spaceState, this.#tenant, space);
    return { ...stateOf(space, row), id: row?.id ?? undefined };
  }

  lock(space: string): Promise<LockedSpace | undefined> {
    return this.#rows.get<LockedSpace>(MEMORY.lockSpace, this.#tenant, space);
  }

  /** Made where there is none; undefined when the tenant has too many. */
  async make(space: string): Promise<LockedSpace | undefined> {
    // Two nodes may give two spaces the same number: then one of them finds its row missing.
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- The next look follows what was made.
      const found = await this.lock(space);
      if (found !== undefined) return found;
      const values = [this.#tenant, space, SPACES_MAX - 1] as const;
      // oxlint-disable-next-line no-await-in-loop
      const made = await this.#rows.run(MEMORY.makeSpace, ...values);
      // oxlint-disable-next-line no-await-in-loop
      if (made === 0 && (await this.#isFull())) return undefined;
    }
  }

  /** Numbers of the spaces that are meant. */
  async chosen(choice: SpaceChoice): Promise<number[]> {
    const asked =
      'space' in choice
        ? this.#rows.all<{ id: number }>(MEMORY.spacesNamed, this.#tenant, choice.space)
        : this.#rows.all<{ id: number }>(
            MEMORY.spacesLike,
            this.#tenant,
            (choice.globs ?? ['*']).map(patternOf),
          );
    return (await asked).map(({ id }) => id);
  }

  async #isFull(): Promise<boolean> {
    return (await this.chosen({ globs: undefined })).length >= SPACES_MAX - 1;
  }
}

export function stateOf(space: string, row: Omit<StateRow, 'id'> | undefined): SpaceState {
  return {
    space,
    generation: `g${row?.epoch ?? ''}.${row?.counter ?? 0}`,
    commitSeq: row?.seq ?? 0,
    records: row?.records ?? 0,
  };
}

export function bareState({ space, generation, commitSeq, records }: SpaceState): SpaceState {
  return { space, generation, commitSeq, records };
}

/** Globs of a key have no other special character than the star: src/core/memory-api/keys.ts. */
function patternOf(glob: string): string {
  return glob.replaceAll(/[\\%_]/g, '\\$&').replaceAll('*', '%');
}
