import type { ChangeOutcome } from '../../ports/control-store.ts';
import type {
  MasterKeyRow,
  RewrappedSecret,
  SealedSecret,
  VaultChange,
} from '../../ports/vault-store.ts';
import { masterOf, type MasterRow } from '../service-store/vault-table.ts';
import type { Rows } from './rows.ts';
import { CONTROL } from './statements/control.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/** Sealed secrets, master keys and signing keys as rows. */

export async function changeVault(rows: Rows, change: VaultChange): Promise<ChangeOutcome> {
  switch (change.what) {
    case 'master.add':
      return addMaster(rows, change);
    case 'master.retire':
      return retireMaster(rows, change);
    case 'secrets.rewrap':
      for (const row of change.rows) {
        // oxlint-disable-next-line no-await-in-loop -- One connection answers one after the other.
        await rewrap(rows, row);
      }
      return 'done';
    case 'signing.add':
      await putSecret(rows, change.secret);
      await rows.run(CONTROL.retireSigningKeys, change.at);
      await rows.run(CONTROL.addSigningKey, change.kid, change.x, change.at);
      return 'done';
  }
}

export async function listMasterKeys(rows: Rows): Promise<MasterKeyRow[]> {
  return (await rows.all<MasterRow>(CONTROL.masterKeys)).map(masterOf);
}

/** Replaces the secret of the same id. Its master key cannot be retired meanwhile. */
export async function putSecret(rows: Rows, secret: SealedSecret): Promise<void> {
  await holdMaster(rows, secret.kek);
  await rows.run(
    CONTROL.putSecret,
    secret.tenant,
    secret.secretId,
    secret.owner,
    secret.purpose,
    secret.version,
    secret.kek,
    secret.wrapped,
    secret.ciphertext,
    secret.fingerprint,
    secret.savedAt,
  );
}

async function holdMaster(rows: Rows, kek: string): Promise<void> {
  if ((await rows.get(CONTROL.holdMasterKey, kek)) === undefined) {
    throw new MemoryError('unavailable', 'The master key of the secret is missing.');
  }
}

async function addMaster(
  rows: Rows,
  { id, canary, at }: Extract<VaultChange, { what: 'master.add' }>,
): Promise<ChangeOutcome> {
  const known = await rows.get(CONTROL.holdMasterKey, id);
  if (known !== undefined) return 'exists';
  await rows.run(CONTROL.demoteMasterKey);
  await rows.run(CONTROL.addMasterKey, id, canary.wrapped, canary.ciphertext, at);
  return 'done';
}

/** Never the active one, and none that a secret still needs. */
async function retireMaster(
  rows: Rows,
  { id, at }: Extract<VaultChange, { what: 'master.retire' }>,
): Promise<ChangeOutcome> {
  // A writer of a secret locks the row of its master key, so this waits and then counts the
  // secrets.
  await rows.get(CONTROL.lockMasterKey, id);
  const key = (await listMasterKeys(rows)).find((one) => one.id === id);
  if (key === undefined || key.state === 'retired') return 'missing';
  if (key.state === 'active' || key.secrets > 0) return 'used';
  await rows.run(CONTROL.retireMasterKey, id, at);
  return 'done';
}

/** The master key of a row that was changed meanwhile is left as it is. */
async function rewrap(rows: Rows, row: RewrappedSecret): Promise<void> {
  const { tenant, secretId, version, kekBefore, kek, wrapped } = row;
  const changed = await rows.run(
    CONTROL.rewrapSecret,
    tenant,
    secretId,
    version,
    kekBefore,
    kek,
    wrapped,
  );
  if (changed > 0) await holdMaster(rows, kek);
}
