import type { Transactions } from '../../ports/rows.ts';
import { analyze, STATISTICS } from './statements/upkeep.ts';

/**
 * Updates the planner's statistics of fast-growing tables. Without them the planner may take any index that begins with
 * tenant and space, and read the whole space for each row. Autovacuum by default checks only once a minute, and a crash
 * of the server deletes the counters by which autovacuum finds grown tables.
 */

const PERIOD_MS = 10_000;
/**
 * A table gets new statistics once it has this many pages more than twice its pages at the last update. Any plan reads
 * these 64 kB fast.
 */
const SMALL_PAGES = 8;
/** Bound on tables that one check updates. The next check updates the rest. */
const TABLES_MAX = 64;

/** Tables that grow with use and so need new statistics; those of the console stay small. */
const TABLES: readonly string[] = [
  'tenant_spaces',
  'sources',
  'objects',
  'conversations',
  'texts',
  'passages',
  'signals',
  'purged',
  'answers',
  'tenant_ledger',
  'word_counts',
  'receipts',
  'usage_days',
  'audit',
];

export class Statistics {
  readonly #open: () => Promise<Transactions>;
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;

  /** Checks the tables every `periodMs` until stop() is called. */
  constructor(open: () => Promise<Transactions>, periodMs = PERIOD_MS) {
    this.#open = open;
    this.#timer = setInterval(() => void this.#look(), periodMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await keepStatistics(await this.#open());
    } catch {
      // If the database is unavailable, statistics are not updated now; the next check comes later.
    } finally {
      this.#isLooking = false;
    }
  }
}

/** Updates the statistics of the tables that STATISTICS.outgrown lists, at most TABLES_MAX. Throws MemoryError. */
export async function keepStatistics(transactions: Transactions): Promise<void> {
  const values = [TABLES, SMALL_PAGES, TABLES_MAX];
  const outgrown = await transactions.read((rows) =>
    rows.all<{ name: string }>(STATISTICS.outgrown, ...values),
  );
  for (const { name } of outgrown) {
    // oxlint-disable-next-line no-await-in-loop -- One connection is enough for work that no call waits for.
    await transactions.job((rows) => rows.run(analyze(name)));
  }
}
