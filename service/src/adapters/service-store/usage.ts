import type {
  SpentQuestion,
  UsageFilter,
  UsageGroup,
  UsageSum,
} from '../../ports/receipt-store.ts';
import { Conditions } from '../../../../src/adapters/store/conditions.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import {
  COUNT_ADDITIONS,
  COUNT_COLUMNS,
  countsOf,
  type CountsRow,
  countSums,
  type UsageRow,
} from './usage-counts.ts';

/** The sums of receipts by day (UTC), key, provider and model. They outlive the receipts. */

const SUMS = countSums((name) => `sum(${name})`);

type SumRow = CountsRow & Readonly<Record<UsageGroup, string>>;

export class UsageTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add({ names, counts }: UsageRow): void {
    const values = [...names, ...counts];
    this.#database.run(
      `INSERT INTO usage_days (tenant, day, key, provider, model, ${COUNT_COLUMNS})
       VALUES (${values.map(() => '?').join(', ')})
       ON CONFLICT (tenant, day, key, provider, model) DO UPDATE SET ${COUNT_ADDITIONS}`,
      ...values,
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
