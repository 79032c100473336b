import type { AgentLook } from '../../core/recall/agent-facts.ts';
import type { RecallAnswer, RecallQuestion } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import type { RecallMarks } from './recall-marks.ts';
import { Search, type Weighed } from './search.ts';
import type { Signals } from './signals.ts';
import { SqliteSource } from './sqlite-source.ts';
import { done, runAtOnce } from './steps.ts';

/** Recall from a SQLite file, which answers at once. */
export class FileSearch {
  readonly #database: Database;
  readonly #search: Search;

  /** Without `signals` an agent's question is answered with passages, as a chat's is. */
  constructor(database: Database, signals?: Pick<Signals, 'of' | 'add'>, marks?: RecallMarks) {
    const shared = signals && {
      of: (space: number) => done(signals.of(space)),
      add: signals.add.bind(signals),
    };
    this.#database = database;
    this.#search = new Search(new SqliteSource(database), shared, marks);
  }

  recall(
    given: RecallQuestion,
    others?: readonly string[],
    explain?: (look: AgentLook) => void,
  ): RecallAnswer {
    return runAtOnce(this.#search.recall(given, others, explain));
  }

  weigh(given: RecallQuestion, most: number): Weighed {
    return runAtOnce(this.#search.weigh(given, most));
  }

  /**
   * Asks about the newest record and drops the answer. The first real question then finds compiled
   * code, prepared statements and the pages of the index, and stays within its deadline.
   */
  warm(): void {
    const newest = this.#database.get<{ space: string; terms: string; at: number }>(NEWEST);
    if (newest === undefined) return;
    const { space, terms, at } = newest;
    const asked = { space, humanText: terms, assistantText: terms, excludeDigests: [] };
    this.recall({ ...asked, tokensMax: WARMING_TOKENS, now: at });
  }
}

/** As many as a recall has by default. */
const WARMING_TOKENS = 512;

const NEWEST = `SELECT s.name AS space, p.terms, r.at FROM records r JOIN passages p ON p.record = r.id
  JOIN spaces s ON s.id = r.space ORDER BY r.at DESC LIMIT 1`;
