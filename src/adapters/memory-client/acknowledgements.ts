import { SERVICE_TABLES } from '../state/state-file.ts';
import type { State } from '../state/state.ts';
import { loadDriver, type SqlValue, Statements } from '../store/driver.ts';

/**
 * Records the texts that a memory service has acknowledged, that is, confirmed as stored: for each space its
 * generation, the highest commit sequence, and the digests of the texts. svc asks for proofs of acknowledged texts
 * only, so the service learns no digest of a text that it did not get.
 *
 * The tables are in `state.db`, so that svc leaves out the same outputs after a restart. If an acknowledgement is lost,
 * svc sends the text again, and the service answers `duplicate`.
 */

/** Bound on acknowledged texts: some weeks of work, 15 MB. */
const ACKNOWLEDGED_MAX = 50_000;

/** Deletes the oldest acknowledgements above the bound. */
export function pruneAcknowledged(rows: Statements): void {
  rows.run(
    'DELETE FROM acknowledged WHERE n <= (SELECT n FROM acknowledged ORDER BY n DESC LIMIT 1 OFFSET ?)',
    ACKNOWLEDGED_MAX,
  );
}

export interface Acknowledged {
  /** The digest of the record's canonical bytes, which the service uses. */
  readonly digest: string;
  readonly bytes: number;
}

export type AcknowledgedText = Acknowledged & {
  /** The digest of the text, which svc uses. */
  readonly text: string;
};

interface SpaceState {
  readonly generation: string;
  sequence: number;
}

/**
 * `moved`: the generation has changed, so earlier acknowledgements are invalid. `behind`: the service reports a lower
 * commit sequence than before, so it may have lost texts.
 */
export type SpaceChange = 'same' | 'moved' | 'behind';

/** Reads and writes the tables of the acknowledgements. */
export interface AcknowledgedTables {
  /** Throws errors of SQLite and the file system. */
  read<Result>(work: (rows: Statements) => Result): Result;
  /** Runs a write now, or later if the file is locked. */
  write(work: (rows: Statements) => void): void;
}

export function tablesIn({ file, writer }: Pick<State, 'file' | 'writer'>): AcknowledgedTables {
  return { read: (work) => file.ask(work), write: (work) => void writer.put(work) };
}

/** Makes tables in memory, for a command that ends soon. */
export function tablesInMemory(): AcknowledgedTables {
  const rows = new Statements(loadDriver().open(':memory:'));
  rows.exec(SERVICE_TABLES);
  return { read: (work) => work(rows), write: (work) => work(rows) };
}

export interface AcknowledgementsOptions {
  readonly tables: AcknowledgedTables;
  /** Names the service and its key. Each such pair has acknowledgements of its own. */
  readonly target: string;
  /** Called with each generation that the service reports. */
  readonly onSeen: (space: string, generation: string) => void;
  /**
   * Called when a space has a new generation: something was forgotten there on any machine, or the service's database
   * was restored. If it rejects, it is called again with the next answer.
   */
  readonly onMoved?: (space: string) => Promise<void>;
  /** Called when the service first reports a lower commit sequence of a space than before; once for each space. */
  readonly onBehind: (space: string) => void;
}

export class Acknowledgements {
  readonly #options: AcknowledgementsOptions;
  /** The spaces as the service last described them to this process. */
  readonly #spaces = new Map<string, SpaceState>();
  /** Spaces whose `onMoved` failed; it is called again with the next answer. */
  readonly #failed = new Set<string>();
  readonly #behind = new Set<string>();

  constructor(options: AcknowledgementsOptions) {
    this.#options = options;
  }

  generationOf(space: string): string | undefined {
    return this.#stateOf(space)?.generation;
  }

  /** Returns the highest commit sequence that svc knows of the space's present generation; undefined if none. */
  sequenceOf(space: string): number | undefined {
    return this.#stateOf(space)?.sequence;
  }

  /** Returns those of these texts that the service has acknowledged in the space's present generation. */
  find(space: string, texts: readonly string[]): readonly AcknowledgedText[] {
    const generation = this.generationOf(space);
    if (generation === undefined || texts.length === 0) return [];
    return this.#all(
      `SELECT text, digest, bytes FROM acknowledged WHERE target = ? AND space = ?
       AND generation = ? AND text IN (SELECT value FROM json_each(?)) ORDER BY n`,
      space,
      generation,
      JSON.stringify(texts),
    );
  }

  /** Records the generation and commit sequence that the service reports, and returns how they differ from before. */
  observe(space: string, generation: string, sequence: number): SpaceChange {
    this.#options.onSeen(space, generation);
    const known = this.#stateOf(space);
    if (known?.generation !== generation) {
      this.#spaces.set(space, { generation, sequence });
      if (known === undefined) this.#enter(space);
      else void this.#move(space);
      return known === undefined ? 'same' : 'moved';
    }
    if (this.#failed.has(space)) void this.#move(space);
    if (sequence < known.sequence) {
      if (!this.#behind.has(space)) this.#options.onBehind(space);
      this.#behind.add(space);
      return 'behind';
    }
    known.sequence = sequence;
    return 'same';
  }

  add(space: string, texts: readonly AcknowledgedText[]): void {
    const { generation = '', sequence = 0 } = this.#stateOf(space) ?? {};
    if (texts.length === 0) return;
    this.#write(space, (run) => {
      for (const { text, digest, bytes } of texts) {
        run(
          'INSERT OR REPLACE INTO acknowledged (target, space, text, generation, digest, bytes) VALUES (?, ?, ?, ?, ?, ?)',
          text,
          generation,
          digest,
          bytes,
        );
      }
      run(
        'UPDATE acknowledged_spaces SET sequence = max(sequence, ?4) WHERE target = ?1 AND space = ?2 AND generation = ?3',
        generation,
        sequence,
      );
    });
  }

  /** Drops an acknowledgement, because the service says that it does not have the text. */
  drop(space: string, text: string): void {
    this.#write(space, (run) => {
      run('DELETE FROM acknowledged WHERE target = ? AND space = ? AND text = ?', text);
    });
  }

  #stateOf(space: string): SpaceState | undefined {
    const known = this.#spaces.get(space);
    if (known !== undefined) return known;
    const [stored] = this.#all<SpaceState>(
      'SELECT generation, sequence FROM acknowledged_spaces WHERE target = ? AND space = ?',
      space,
    );
    if (stored !== undefined) this.#spaces.set(space, stored);
    return stored;
  }

  /** Calls `onMoved`, and stores the new generation if that succeeds. Never rejects. */
  async #move(space: string): Promise<void> {
    const generation = this.generationOf(space);
    this.#failed.delete(space);
    try {
      await this.#options.onMoved?.(space);
    } catch {
      this.#failed.add(space);
      return;
    }
    // If the generation has changed again meanwhile, observe() has called this again for that change.
    if (this.generationOf(space) === generation) this.#enter(space);
  }

  /** Stores the generation of a space, and drops the texts that were acknowledged in another one. */
  #enter(space: string): void {
    const { generation = '', sequence = 0 } = this.#stateOf(space) ?? {};
    this.#write(space, (run) => {
      run(
        'INSERT OR REPLACE INTO acknowledged_spaces (target, space, generation, sequence) VALUES (?, ?, ?, ?)',
        generation,
        sequence,
      );
      run(
        'DELETE FROM acknowledged WHERE target = ? AND space = ? AND generation <> ?',
        generation,
      );
    });
  }

  /** Returns rows; none if the file cannot be read: without acknowledgements svc leaves nothing out. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- As `all` of Statements.
  #all<Row>(sql: string, space: string, ...values: SqlValue[]): readonly Row[] {
    const { tables, target } = this.#options;
    try {
      return tables.read((rows) => rows.all<Row>(sql, target, space, ...values));
    } catch {
      return [];
    }
  }

  /** Writes in one transaction. The first two values of each statement are the target and the space. */
  #write(space: string, work: (run: (sql: string, ...values: SqlValue[]) => void) => void): void {
    const { tables, target } = this.#options;
    tables.write((rows) =>
      rows.transaction(() => work((sql, ...values) => rows.run(sql, target, space, ...values))),
    );
  }
}
