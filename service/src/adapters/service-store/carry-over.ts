import { randomBytes } from 'node:crypto';
import { batchesOf } from '../../../../src/core/bytes/batches.ts';
import { groupBy } from '../../../../src/core/bytes/group-by.ts';
import { PURGE_DIGESTS_MAX } from '../../../../src/core/memory-api/limits.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import type { TenantProvider } from '../../core/providers.ts';
import { SERVICE_TENANT } from '../../core/tenants.ts';
import type { CarriedOver } from '../../ports/service-store.ts';
import { providerOf } from '../control/facts.ts';
import { ServiceLedgerTable } from './ledger-table.ts';
import { Purges } from './purges.ts';
import { Spaces } from './spaces.ts';
import { SqliteTransactions } from './transactions.ts';

/**
 * Takes over what a restore must not undo, from the database that it replaces: revocations, secrets that
 * were replaced (they may have leaked), receipts and purges. Everything else of it is set aside.
 */

const BATCHES = { countMax: PURGE_DIGESTS_MAX, sizeMax: Infinity, sizeOf: () => 0 } as const;

/** The audit knows which providers were deleted. */
const DELETED = `SELECT tenant_id, json_extract(event, '$.target.id') FROM present.audit
  WHERE json_extract(event, '$.kind') = 'provider.deleted'`;

const STATEMENTS: readonly string[] = [
  `UPDATE service_keys AS k SET hash = p.hash, retired = p.retired, rotated_at = p.rotated_at
    FROM present.service_keys p WHERE p.tenant_id = k.tenant_id AND p.id = k.id
      AND p.rotated_at > coalesce(k.rotated_at, 0)`,
  // The present database knows which master keys there are now; a backup may still need a retired one.
  `UPDATE master_keys SET state = 'decrypt_only' WHERE state = 'active'
    AND EXISTS (SELECT 1 FROM present.master_keys WHERE state = 'active')`,
  'INSERT INTO master_keys SELECT * FROM present.master_keys WHERE true ON CONFLICT DO NOTHING',
  `UPDATE master_keys SET state = 'active'
    WHERE id IN (SELECT id FROM present.master_keys WHERE state = 'active')`,
  // A deleted provider stays deleted, and its secrets destroyed.
  `DELETE FROM secrets WHERE (tenant_id, owner) IN (${DELETED})`,
  `DELETE FROM providers WHERE (tenant_id, id) IN (${DELETED})`,
  // The present signing key remains active; signatures of the backup's keys can still be checked.
  `INSERT INTO signing_keys SELECT * FROM present.signing_keys WHERE true
    ON CONFLICT (kid) DO UPDATE SET retired_at = excluded.retired_at`,
  `INSERT OR REPLACE INTO secrets SELECT s.* FROM present.secrets s
    JOIN present.signing_keys k ON s.tenant_id = '${SERVICE_TENANT}' AND s.id = k.kid`,
  `UPDATE tenants AS t SET status = p.status FROM present.tenants p
    WHERE p.tenant_id = t.tenant_id AND p.status <> 'active' AND t.status = 'active'`,
  'INSERT OR IGNORE INTO receipts SELECT * FROM present.receipts',
  // These sums only grow, so the present ones count what the backup has.
  'DELETE FROM receipt_heads',
  'INSERT INTO receipt_heads SELECT * FROM present.receipt_heads',
  'DELETE FROM usage_days',
  'INSERT INTO usage_days SELECT * FROM present.usage_days',
];

const REVOKED = ['service_keys', 'admins'].map(
  (table) => `UPDATE ${table} AS k SET revoked_at = p.revoked_at FROM present.${table} p
    WHERE p.tenant_id = k.tenant_id AND p.id = k.id AND p.revoked_at IS NOT NULL
      AND k.revoked_at IS NULL`,
);

/** `present`: the path of the database that is replaced. Both have the same tables. */
export async function carryOver(to: Database, present: string, now: number): Promise<CarriedOver> {
  to.run('ATTACH DATABASE ? AS present', present);
  try {
    const revoked = to.transaction(() => {
      for (const statement of STATEMENTS) to.run(statement);
      carryCredentials(to);
      return REVOKED.reduce((sum, statement) => sum + to.run(statement), 0);
    });
    return { revoked, purged: await purgeAgain(to, now) };
  } finally {
    to.exec('DETACH DATABASE present');
  }
}

/** The provider itself goes back to the backup: its name and its models may have changed for a reason. */
function carryCredentials(to: Database): void {
  const rows = to.all<{ tenant_id: string; id: string; before: string; now: string }>(
    `SELECT b.tenant_id, b.id, b.facts AS before, p.facts AS now FROM providers b
     JOIN present.providers p ON p.tenant_id = b.tenant_id AND p.id = b.id
     WHERE b.version < p.version`,
  );
  for (const { tenant_id: tenant, id, before, now } of rows) {
    const joined = withSecretsOf(providerOf(before), providerOf(now));
    to.run('DELETE FROM secrets WHERE tenant_id = ? AND owner = ?', tenant, id);
    to.run(
      `INSERT OR REPLACE INTO secrets SELECT * FROM present.secrets WHERE tenant_id = ? AND owner = ?`,
      tenant,
      id,
    );
    to.run(
      'UPDATE providers SET version = ?, facts = ? WHERE tenant_id = ? AND id = ?',
      joined.version,
      JSON.stringify(joined),
      tenant,
      id,
    );
  }
}

function withSecretsOf(then: TenantProvider, now: TenantProvider): TenantProvider {
  const { credential: _, ...rest } = then;
  const { credential, headers, query, version, updatedAt } = now;
  const given = credential === undefined ? {} : { credential };
  return { ...rest, ...given, headers, query, version, updatedAt };
}

async function purgeAgain(to: Database, now: number): Promise<number> {
  const rows = to.all<{ space: string; digest: string }>(
    'SELECT s.name AS space, p.digest FROM present.purged p JOIN present.spaces s ON s.id = p.space',
  );
  const ledger = new ServiceLedgerTable(to);
  const purges = new Purges(to, new Spaces(to), (...given) => ledger.forgetBlocks(...given));
  const transactions = new SqliteTransactions(to);
  let purged = 0;
  for (const [space, digests] of groupBy(rows, (row) => row.space)) {
    for (const some of batchesOf(digests, BATCHES)) {
      const scope = { digests: some.map(({ digest }) => digest) };
      const purgeId = `prg_${randomBytes(13).toString('hex')}`;
      const order = { purgeId, space, scope, isDryRun: false, requestedBy: 'restore', now };
      // oxlint-disable-next-line no-await-in-loop -- One file is written by one transaction at a time.
      purged += (await transactions.write((held) => purges.begin(held, order))).records;
      while (!purges.continue(purgeId, now));
    }
  }
  return purged;
}
