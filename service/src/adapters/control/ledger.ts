import { quotedIn } from '../../../../src/adapters/state/ledger-row.ts';
import { FORGOTTEN_KEY } from '../../../../src/core/ledger/entries.ts';
import type { LedgerRow } from '../../../../src/ports/ledger.ts';
import type { Rows, Transactions } from '../../ports/rows.ts';
import type { TenantStore } from '../../ports/service-store.ts';
import { LEDGER } from './statements.ts';

/**
 * Reads and writes the ledger of one tenant: the decisions about earlier requests, such as recalled blocks, which
 * later requests repeat.
 */

/** Returns the key of the row whose `at` is the time of the last purge in this space. */
function forgottenKey(space: string): string {
  return `${FORGOTTEN_KEY} ${Buffer.from(space).toString('base64url')}`;
}

export function ledgerCalls(open: () => Promise<Transactions>, tenant: string) {
  return {
    findLedger: async (keys) =>
      (await open()).look<LedgerRow>({ statement: LEDGER.find, values: [tenant, keys] }),
    recordLedger: async (given) => {
      if (given.length === 0) return;
      await (await open()).note((rows) => record(rows, tenant, given));
    },
  } satisfies Partial<TenantStore>;
}

/**
 * Empties a tenant's recalled blocks that quote a record of this space, in a purge's transaction. A purged text must
 * not be sent again, although each prompt whose block is empty now misses the provider's cache once. The first
 * statements lock the rows with the times of the last purges, so a concurrent writer of blocks waits and then reads the
 * new times.
 */
export async function forgetBlocks(
  rows: Rows,
  { tenant, space, at }: { readonly tenant: string; readonly space: string; readonly at: number },
): Promise<void> {
  await rows.run(LEDGER.markForgotten, tenant, FORGOTTEN_KEY, at);
  await rows.run(LEDGER.markForgotten, tenant, forgottenKey(space), at);
  const found = await rows.all<Pick<LedgerRow, 'key' | 'block'>>(LEDGER.blocks, tenant);
  const quoting = found.filter((row) => quotedIn(row).some((one) => one.space === space));
  if (quoting.length === 0) return;
  const keys = quoting.map(({ key }) => key);
  await rows.run(LEDGER.empty, tenant, keys, at);
}

/**
 * Returns the rows, after emptying the block of each row that quotes a record of a space and is not newer than the
 * last purge in this space.
 */
async function withoutPurged(
  rows: Rows,
  tenant: string,
  given: readonly LedgerRow[],
): Promise<readonly LedgerRow[]> {
  // The second statement locks the row with the time of the tenant's last purge. So it waits for a running purge.
  const [, last] = await Promise.all([
    rows.run(LEDGER.makeForgotten, tenant, FORGOTTEN_KEY),
    rows.get<{ at: number }>(LEDGER.holdForgotten, tenant, FORGOTTEN_KEY),
  ]);
  const late = given.filter(({ at }) => at <= (last?.at ?? -1));
  const keys = new Set(late.flatMap(quotedIn).map(({ space }) => forgottenKey(space)));
  if (keys.size === 0) return given;
  const found = await rows.all<LedgerRow>(LEDGER.find, tenant, [...keys]);
  const purges = new Map(found.map(({ key, at }) => [key, at]));
  return given.map((row) =>
    quotedIn(row).some(({ space }) => row.at <= (purges.get(forgottenKey(space)) ?? -1))
      ? { ...row, block: '' }
      : row,
  );
}

/** Writes rows. Of two rows with one key the later one is stored; but a row with `isOnce` never replaces another. */
async function record(rows: Rows, tenant: string, given: readonly LedgerRow[]): Promise<void> {
  const clean = await withoutPurged(rows, tenant, given);
  const valuesOf = ({ key, block, form, at }: LedgerRow) => [tenant, key, block, form, at] as const;
  const once = distinct(
    clean.filter(({ isOnce }) => isOnce === true),
    (known) => known,
  );
  const later = distinct(
    clean.filter(({ isOnce }) => isOnce !== true),
    (known, next) => (next.at >= known.at ? next : known),
  );
  await Promise.all([
    rows.each(LEDGER.addOnce, once.map(valuesOf)),
    rows.each(LEDGER.add, later.map(valuesOf)),
  ]);
}

/** Returns one row per key, in the order of the keys, so that two nodes never deadlock. */
function distinct(
  rows: readonly LedgerRow[],
  choose: (known: LedgerRow, next: LedgerRow) => LedgerRow,
): LedgerRow[] {
  const byKey = new Map<string, LedgerRow>();
  for (const row of rows) {
    const known = byKey.get(row.key);
    byKey.set(row.key, known === undefined ? row : choose(known, row));
  }
  return [...byKey.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1));
}
