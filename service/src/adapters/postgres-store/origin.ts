import {
  type DatabaseOrigin,
  judgeOrigin,
  originText,
  type OriginVerdict,
  readOrigin,
} from '../../core/database-origin.ts';
import type { Transactions } from './connections.ts';
import type { Rows } from './rows.ts';
import { newEpochIn } from './migrations.ts';
import { SCHEMA } from './statements/schema.ts';

/**
 * Runs each time a server is found, before anything else. If the database is not the same as the
 * last time, it begins a new epoch, so that no client relies on earlier acknowledgements.
 */

const ORIGIN = 'origin';

export interface OriginOptions {
  readonly trustsFailover: boolean;
  readonly report: (line: string) => void;
}

export async function settleOrigin(
  transactions: Transactions,
  origin: DatabaseOrigin,
  { trustsFailover, report }: OriginOptions,
): Promise<void> {
  const judge = (before: DatabaseOrigin | undefined): OriginVerdict =>
    judgeOrigin(before, origin, trustsFailover);
  const before = await transactions.read(readNoted);
  if (before === 'no tables' || isNoted(before, origin)) return;
  const settled = transactions.write(async (rows) => {
    await rows.get(SCHEMA.lockMeta);
    // Another node may have been here first.
    const noted = await readNoted(rows);
    if (noted === 'no tables' || isNoted(noted, origin)) return 'same';
    const verdict = judge(noted);
    if (verdict === 'replaced') await newEpochIn(rows);
    await rows.run(SCHEMA.putMeta, ORIGIN, originText(origin));
    await rows.run(SCHEMA.setMeta, ORIGIN, originText(origin));
    return verdict;
  });
  // Where nothing changes for clients, a database that takes no commit yet may answer questions.
  if (judge(before) !== 'replaced') settled.catch(() => undefined);
  else tell(await settled, report);
}

async function readNoted(rows: Rows): Promise<DatabaseOrigin | undefined | 'no tables'> {
  const made = await rows.get<{ found: number }>(SCHEMA.hasMeta);
  if ((made?.found ?? 0) < 2) return 'no tables';
  const row = await rows.get<{ value: string }>(SCHEMA.getMeta, ORIGIN);
  return readOrigin(row?.value);
}

function isNoted(noted: DatabaseOrigin | undefined, origin: DatabaseOrigin): boolean {
  return noted !== undefined && originText(noted) === originText(origin);
}

function tell(verdict: OriginVerdict, report: (line: string) => void): void {
  if (verdict !== 'replaced') return;
  report(
    'The database is not the same as before: it is a promoted standby or a restored copy. A new epoch began, and clients capture again what they still hold.',
  );
}
