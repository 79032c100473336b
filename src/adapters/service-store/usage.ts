import { isoTime } from '../../core/memory/times.ts';
import type {
  ReceiptRow,
  SpentQuestion,
  UsageFilter,
  UsageGroup,
  UsageSum,
} from '../../ports/receipt-store.ts';
import { Conditions } from '../store/conditions.ts';
import type { Database } from '../store/database.ts';

/** The sums of receipts by day (UTC), key, provider and model. They outlive the receipts. */

const COUNTS = [
  'failed',
  'original_input',
  'forwarded_input',
  'recalled',
  'elided',
  'input',
  'cache_read',
  'output',
  'spent',
] as const;

const NAMES = ['requests', ...COUNTS].join(', ');
const SUMS = ['requests', ...COUNTS].map((name) => `sum(${name}) AS ${name}`).join(', ');
const ADDITIONS = ['requests', ...COUNTS]
  .map((name) => `${name} = usage_days.${name} + excluded.${name}`)
  .join(', ');

/** The sums of some rows. */
export type CountsRow = Readonly<Record<(typeof COUNTS)[number] | 'requests', number>>;

type SumRow = CountsRow & Readonly<Record<UsageGroup, string>>;

export class UsageTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The day is the one on which the request came. */
  add({ tenant, keyId, providerId, model, counts }: ReceiptRow, at: number): void {
    this.#database.run(
      `INSERT INTO usage_days (tenant, day, key, provider, model, ${NAMES})
       VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (tenant, day, key, provider, model) DO UPDATE SET ${ADDITIONS}`,
      tenant,
      isoTime(at).slice(0, 'YYYY-MM-DD'.length),
      keyId,
      providerId,
      // A model that no provider was asked for is only a text of the caller.
      providerId === '' ? '' : model,
      counts.failed,
      counts.originalInputTokens,
      counts.forwardedInputTokens,
      counts.recalledTokens,
      counts.elidedTokens,
      counts.inputTokens,
      counts.cacheReadTokens,
      counts.outputTokens,
      counts.spentTokens,
    );
  }

  list(tenant: string, { from, to, keyId, groups, limit, after }: UsageFilter): UsageSum[] {
    const columns = groups.join(', ');
    const conditions = new Conditions();
    conditions.add('tenant = ?', tenant);
    conditions.add('day >= ?', from);
    conditions.add('day <= ?', to);
    conditions.add('key = ?', keyId);
    if (after !== undefined) {
      conditions.require(`(${columns}) > (${groups.map(() => '?').join(', ')})`);
      conditions.values.push(...after);
    }
    return this.#database
      .all<SumRow>(
        `SELECT ${columns}, ${SUMS} FROM usage_days ${conditions.where}
         GROUP BY ${columns} ORDER BY ${columns} LIMIT ?`,
        ...conditions.values,
        limit,
      )
      .map((row) => sumOf(row, groups));
  }

  spent(tenant: string, { from, to, keyId }: SpentQuestion): number {
    const conditions = new Conditions();
    conditions.add('tenant = ?', tenant);
    conditions.add('day >= ?', from);
    conditions.add('day <= ?', to);
    conditions.add('key = ?', keyId);
    const sql = `SELECT coalesce(sum(spent), 0) AS spent FROM usage_days ${conditions.where}`;
    return this.#database.get<{ spent: number }>(sql, ...conditions.values)?.spent ?? 0;
  }
}

function sumOf(row: SumRow, groups: readonly UsageGroup[]): UsageSum {
  return { values: groups.map((group) => row[group]), ...countsOf(row) };
}

export function countsOf(row: CountsRow): Omit<UsageSum, 'values'> {
  return {
    requests: row.requests,
    failed: row.failed,
    originalInputTokens: row.original_input,
    forwardedInputTokens: row.forwarded_input,
    recalledTokens: row.recalled,
    elidedTokens: row.elided,
    inputTokens: row.input,
    cacheReadTokens: row.cache_read,
    outputTokens: row.output,
    spentTokens: row.spent,
  };
}
