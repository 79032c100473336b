import type { Ledger, LedgerEntry } from '../../src/ports/ledger.ts';

/** What a ledger that can be read has under these keys. */
export async function foundEntries(
  ledger: Ledger,
  keys: readonly string[],
): Promise<ReadonlyMap<string, LedgerEntry>> {
  const entries = await ledger.find(keys, 30_000);
  if (typeof entries === 'string') throw new Error(`The ledger is ${entries}.`);
  return entries;
}
