import { VERSION } from '../../../../src/core/version.ts';
import type { ConsoleCall, ConsoleReply } from './console-call.ts';

/** Whether the parts of a service work, and how much it holds. No provider is asked. */
export async function getStatus({ parts }: ConsoleCall): Promise<ConsoleReply> {
  const { store, vault, signer, receipts } = parts;
  const [health, vaultProblem, signerProblem] = await Promise.all([
    store.health(),
    vault.problem(),
    signer.problem(),
  ]);
  const journal = receipts === undefined ? null : (receipts.problem() ?? null);
  const { spaces, records, keys, tenants, providers, bytes, newestAt } = health;
  return {
    status: 200,
    body: {
      version: VERSION,
      // In the order in which a request needs them.
      problems: { vault: vaultProblem ?? null, signer: signerProblem ?? null, journal },
      tenants,
      providers,
      keys,
      spaces,
      records,
      bytes,
      newest_at: newestAt === 0 ? null : new Date(newestAt).toISOString(),
    },
  };
}
