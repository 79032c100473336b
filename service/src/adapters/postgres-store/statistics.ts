import type { Connections } from './connections.ts';
import { analyze, STATISTICS } from './statements/upkeep.ts';

/**
 * Keeps the planner's statistics of tables that grow fast. Without them the planner takes any index
 * that begins with the tenant and the space, and reads the whole space for each row. Autovacuum looks
 * once a minute at best, and a server that crashed has forgotten which tables it never looked at.
 */

const PERIOD_MS = 10_000;
/** A table of 64 kB is read in no time, whatever the plan. */
const SMALL_PAGES = 8;
/** One pass handles so many; the next one continues. */
const TABLES_MAX = 64;

/** Tables that grow with use. Those of the console stay small. */
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
  readonly #connections: () => Promise<Connections>;
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;

  /** Looks every `periodMs` until it is stopped. */
  constructor(connections: () => Promise<Connections>, periodMs = PERIOD_MS) {
    this.#connections = connections;
    this.#timer = setInterval(() => void this.#look(), periodMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await keepStatistics(await this.#connections());
    } catch {
      // A database that is away now has no plans to make, and the next look comes by itself.
    } finally {
      this.#isLooking = false;
    }
  }
}

/** Tables that outgrew their statistics get new ones. Throws MemoryError. */
export async function keepStatistics(connections: Connections): Promise<void> {
  const values = [TABLES, SMALL_PAGES, TABLES_MAX];
  const outgrown = await connections.read((rows) =>
    rows.all<{ name: string }>(STATISTICS.outgrown, ...values),
  );
  for (const { name } of outgrown) {
    // oxlint-disable-next-line no-await-in-loop -- One connection is enough for work that no call waits for.
    await connections.job((rows) => rows.run(analyze(name)));
  }
}
