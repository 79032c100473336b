import {
  type EntryOf,
  type FoundEntries,
  type LedgerAddress,
  LOCAL_TENANT,
} from '../../src/core/ledger/entries.ts';
import type { Ledger } from '../../src/ports/ledger.ts';

/** The block that a conversation used at an item of this name. */
export function blockAddress(name: string) {
  const owner = { tenant: LOCAL_TENANT, conversation: 'c1' };
  return { kind: 'own-block', ...owner, fingerprint: name } as const;
}

export function blockEntry(
  name: string,
  fact: Partial<EntryOf<'own-block'>> = {},
): EntryOf<'own-block'> {
  const block = `block of ${name}`;
  return { ...blockAddress(name), block, form: 'text', space: 'default', at: 1, ...fact };
}

/** The entries that a ledger that can be read has at these addresses. */
export async function foundEntries(
  ledger: Ledger,
  addresses: readonly LedgerAddress[],
): Promise<FoundEntries> {
  const found = await ledger.find(addresses, 30_000);
  if (found.missing !== undefined) throw new Error(`The ledger is ${found.missing}.`);
  return found;
}

/** The blocks under these names; undefined where there is no entry. */
export async function foundBlocks(
  ledger: Ledger,
  names: readonly string[],
): Promise<readonly (string | undefined)[]> {
  const found = await foundEntries(ledger, names.map(blockAddress));
  return names.map((name) => found.get(blockAddress(name))?.block);
}

export async function foundBlock(ledger: Ledger, name: string): Promise<string | undefined> {
  return (await foundBlocks(ledger, [name]))[0];
}
