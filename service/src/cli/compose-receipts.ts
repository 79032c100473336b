import { randomBytes } from 'node:crypto';
import {
  ReceiptJournal,
  type Recovered,
  recoverReceipts,
} from '../adapters/journals/receipt-journal.ts';
import { readPepper } from '../adapters/service-store/service-files.ts';
import { serviceMasterKeys } from '../adapters/vault/service-master-keys.ts';
import type { Environment } from '../../../src/core/settings/config-values.ts';
import { VERSION } from '../../../src/core/version.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import { type Signer, withVault } from '../server/signer.ts';
import { systemClock } from '../../../src/cli/compose-common.ts';
import { openServingStore } from './compose-store.ts';

export { waitingReceipts } from '../adapters/journals/receipt-journal.ts';

/** The composition root of receipts: their journal over the store and the signer of a service. */

export interface ReceiptNeeds {
  readonly folder: string;
  readonly store: ServiceStore;
  readonly signer: Signer;
  readonly report: (line: string) => void;
}

/**
 * The journal of this process, once the receipts of earlier ones are stored. Only the process that
 * holds the folder's lock may call it.
 */
export async function openReceipts(needs: ReceiptNeeds): Promise<ReceiptJournal> {
  const options = optionsOf(needs);
  try {
    await recoverReceipts(options);
  } catch {
    needs.report(
      'Receipts of an earlier run are waiting. To store them, run: svc-service receipts recover',
    );
  }
  return new ReceiptJournal(options);
}

/** Stores what earlier processes left. Throws MemoryError where a service runs on the folder. */
export async function recoverIn(folder: string, environment: Environment): Promise<Recovered> {
  const pepper = await readPepper(folder);
  const store = await openServingStore({ folder, environment });
  try {
    await store.health();
    const masterKeys = serviceMasterKeys(folder, environment);
    const needs = { store, pepper, masterKeys, clock: systemClock, randomBytes };
    const { signer } = withVault(needs);
    return await recoverReceipts(optionsOf({ folder, store, signer, report: () => undefined }));
  } finally {
    await store.close();
  }
}

function optionsOf({ folder, store, signer, report }: ReceiptNeeds) {
  return {
    folder,
    store,
    report,
    node: `node_${randomBytes(12).toString('hex')}`,
    version: VERSION,
    sign: (canonical: readonly string[]) => signer.signTexts(canonical),
    now: () => systemClock.now(),
  };
}
