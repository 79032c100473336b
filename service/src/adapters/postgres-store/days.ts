import { isoTime } from '../../../../src/core/memory/times.ts';
import { firstReceiptIdAt, timeOfReceiptId } from '../../core/receipt-id.ts';
import type { ReceiptRow } from '../../ports/receipt-store.ts';
import type { KeptDays } from '../../ports/service-store.ts';
import type { Connections } from './connections.ts';
import { DAYS, type DayTable, dropDay, makeDay } from './statements/upkeep.ts';

/**
 * Receipts and audit events are in one table for each day, created a week ahead. Expired days are
 * dropped as tables, because deleting their rows would cost as much as writing them.
 */

const DAY_MS = 86_400_000;
const DAYS_AHEAD = 7;
/** Days that this process knows to be made. */
const DAYS_KNOWN_MAX = 1000;

export async function keepDays(
  connections: Connections,
  { now, receiptsFrom, auditFrom }: KeptDays,
): Promise<void> {
  await makeDaysFrom(connections, now);
  if (receiptsFrom !== undefined) await dropBefore(connections, 'receipts', receiptsFrom);
  if (auditFrom === undefined) return;
  await dropBefore(connections, 'audit', auditFrom);
  // Events of days that had no table of their own.
  await connections.job((rows) => rows.run(DAYS.dropAuditRows, auditFrom));
}

/** The day of this moment and those of the week after it. */
async function makeDaysFrom(connections: Connections, at: number): Promise<void> {
  const made = await connections.read((rows) => rows.all<{ name: string }>(DAYS.list));
  const names = new Set(made.map(({ name }) => name));
  const today = Math.floor(at / DAY_MS) * DAY_MS;
  for (let ahead = 0; ahead <= DAYS_AHEAD; ahead += 1) {
    const start = today + ahead * DAY_MS;
    for (const table of ['receipts', 'audit'] as const) {
      if (names.has(`${table}_${dayOf(start)}`)) continue;
      const statement = makeDay(table, dayOf(start), rangeOf(table, start));
      // A day whose rows lie with the rest already stays there.
      // oxlint-disable-next-line no-await-in-loop -- Each takes a lock on the table for a moment.
      await connections.write((rows) => rows.run(statement)).catch(() => undefined);
    }
  }
}

/** Makes the days of receipts and of the week after them, each once. */
export function daysOfReceipts(open: () => Promise<Connections>) {
  const known = new Set<number>();
  return async (rows: readonly ReceiptRow[]): Promise<void> => {
    if (known.size > DAYS_KNOWN_MAX) known.clear();
    for (const { receiptId } of rows) {
      const at = timeOfReceiptId(receiptId) ?? 0;
      const day = Math.floor(at / DAY_MS);
      if (known.has(day)) continue;
      // oxlint-disable-next-line no-await-in-loop -- Most often all are of one day.
      await makeDaysFrom(await open(), at);
      known.add(day);
    }
  };
}

async function dropBefore(connections: Connections, table: DayTable, from: number): Promise<void> {
  const made = await connections.read((rows) => rows.all<{ name: string }>(DAYS.list));
  // A day is over when the next one begins.
  const first = dayOf(from);
  for (const { name } of made) {
    const day = name.slice(table.length + 1);
    if (!name.startsWith(`${table}_`) || day >= first) continue;
    // A lock that is not to be had now is had in an hour.
    // oxlint-disable-next-line no-await-in-loop
    await connections.write((rows) => rows.run(dropDay(table, day))).catch(() => undefined);
  }
}

function rangeOf(table: DayTable, start: number): { first: string; next: string } {
  const bounds = [start, start + DAY_MS];
  const [first = '', next = ''] = bounds.map(table === 'receipts' ? firstReceiptIdAt : String);
  return { first, next };
}

function dayOf(at: number): string {
  return isoTime(at).slice(0, 'YYYY-MM-DD'.length).replaceAll('-', '');
}
