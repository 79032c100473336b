import type { SpaceChoice, SpaceState } from '../../ports/service-store.ts';
import { mayUse } from '../../../../src/core/memory-api/keys.ts';
import type { Rows } from '../../ports/rows.ts';
import { MEMORY } from './statements.ts';

/** Reads spaces of a tenant with their generation and commit sequence. */

export interface StateRow {
  readonly epoch: string;
  readonly id: number | null;
  readonly counter: number | null;
  readonly seq: number | null;
  readonly records: number | null;
  readonly bytes: number | null;
}

interface FoundSpace {
  readonly state: SpaceState;
  /** The number of the space; undefined if no capture or purge has made the space yet. */
  readonly id: number | undefined;
  readonly bytes: number;
}

export class Spaces {
  readonly #rows: Rows;
  readonly #tenant: string;

  constructor(rows: Rows, tenant: string) {
    this.#rows = rows;
    this.#tenant = tenant;
  }

  /** Finds a space. Reads the epoch again each time, because after a restore no node may report the old epoch. */
  async find(space: string): Promise<FoundSpace> {
    const row = await this.#rows.get<StateRow>(MEMORY.spaceState, this.#tenant, space);
    return { state: stateOf(space, row), id: row?.id ?? undefined, bytes: row?.bytes ?? 0 };
  }

  async state(space: string): Promise<SpaceState> {
    return (await this.find(space)).state;
  }

  /**
   * Returns how many more records the plan allows; Infinity without a limit. Two concurrent batches of different spaces
   * may exceed the limit by one batch, because each locks only the row of its space.
   */
  async room(): Promise<number> {
    const found = await this.#rows.get<{ room: number | null }>(MEMORY.planRoom, this.#tenant);
    return found?.room ?? Infinity;
  }

  /** Returns the numbers of the chosen spaces. */
  async chosen(choice: SpaceChoice): Promise<number[]> {
    if ('space' in choice) {
      const named = [MEMORY.spacesNamed, this.#tenant, choice.space] as const;
      return (await this.#rows.all<{ id: number }>(...named)).map(({ id }) => id);
    }
    const all = await this.#rows.all<{ id: number; name: string }>(MEMORY.spaceNames, this.#tenant);
    const { globs: spaces } = choice;
    const rights = spaces === undefined ? {} : { spaces };
    return all.filter(({ name }) => mayUse(rights, name)).map(({ id }) => id);
  }

  /** Returns the numbers of the chosen spaces without those that `erasing` returns. */
  async readable(choice: SpaceChoice): Promise<number[]> {
    const [chosen, erasing] = await Promise.all([this.chosen(choice), this.erasing()]);
    const hidden = new Set(erasing.map(({ id }) => id));
    return chosen.filter((id) => !hidden.has(id));
  }

  /**
   * Returns the spaces with a purge that has records left to erase. From such a space no record is listed, recalled,
   * retrieved or proven: a purged record must not be found after the call that ordered its purge, and erasing 10,000
   * records takes some seconds.
   */
  erasing(): Promise<{ readonly id: number; readonly name: string }[]> {
    return this.#rows.all(MEMORY.erasingSpaces, this.#tenant);
  }
}

export function stateOf(space: string, row: Omit<StateRow, 'id'> | undefined): SpaceState {
  return {
    space,
    generation: `g${row?.epoch ?? ''}.${row?.counter ?? 0}`,
    commit_seq: row?.seq ?? 0,
    records: row?.records ?? 0,
  };
}
