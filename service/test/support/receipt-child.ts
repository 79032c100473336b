import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ReceiptJournal, recoverReceipts } from '../../src/adapters/journals/receipt-journal.ts';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { objectSigner } from '../../src/core/jws.ts';
import { closingOf, openingOf } from './receipt-facts.ts';

/**
 * A node that only makes receipts: eight requests at a time, each noted in a file as seen by the
 * provider once its receipt is open. It runs until it is killed; with `recover` it stores what others left.
 */

const [folder = '', seen = '', kid = '', privateKey = '', mode = ''] = process.argv.slice(2);
const TENANTS = ['default', 'acme'];

const store = openServiceStore({ folder, serves: true, creates: true, report: () => undefined });
await store.health();
const signer = objectSigner({ kid, privateKey });
const options = {
  folder,
  node: `node_${randomBytes(6).toString('hex')}`,
  version: '0.1.2',
  store,
  sign: async (canonical: readonly string[]) => canonical.map(signer.signText),
  now: Date.now,
  report: () => undefined,
};
await recoverReceipts(options);
if (mode === 'recover') {
  await store.close();
} else {
  const journal = new ReceiptJournal(options);
  process.stdout.write('ready\n');
  await Promise.all(Array.from({ length: 8 }, (_, at) => stream(journal, TENANTS[at % 2] ?? '')));
}

async function stream(journal: ReceiptJournal, tenant: string): Promise<never> {
  for (;;) {
    const opening = openingOf({ tenant, at: Date.now() });
    const receipt = journal.open(opening);
    appendFileSync(seen, `${tenant} ${opening.receiptId}\n`);
    // oxlint-disable-next-line no-await-in-loop -- An answer that streams.
    await sleep(Math.random() * 20);
    receipt.close(closingOf());
  }
}
