import { randomBytes } from 'node:crypto';
import { batchesOf } from '../../../../src/core/bytes/batches.ts';
import { groupBy } from '../../../../src/core/bytes/group-by.ts';
import { PURGE_DIGESTS_MAX } from '../../../../src/core/memory-api/limits.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import type { CarriedOver } from '../../ports/service-store.ts';
import { carryReceipts } from './carry-receipts.ts';
import { carrySecrets } from './carry-secrets.ts';
import { ServiceLedgerTable } from './ledger-table.ts';
import { Purges } from './purges.ts';
import { Spaces } from './spaces.ts';

/** Takes over what a restore must not undo. Everything else of the present database is set aside. */

const BATCHES = { countMax: PURGE_DIGESTS_MAX, sizeMax: Infinity, sizeOf: () => 0 } as const;

export function carryOver(from: Database, to: Database, now: number): CarriedOver {
  carryRotations(from, to);
  carrySecrets(from, to);
  carryReceipts(from, to);
  const revoked = carryRevocations(from, to);
  let purged = 0;
  const ledger = new ServiceLedgerTable(to);
  const purges = new Purges(to, new Spaces(to), (...given) => ledger.forgetBlocks(...given));
  for (const [space, rows] of purgedIn(from)) {
    for (const some of batchesOf(rows, BATCHES)) {
      const scope = { digests: some.map(({ digest }) => digest) };
      const purgeId = `prg_${randomBytes(13).toString('hex')}`;
      const order = { purgeId, space, scope, isDryRun: false, requestedBy: 'restore', now };
      purged += purges.begin(order).records;
      while (!purges.continue(purgeId, now));
    }
  }
  return { revoked, purged };
}

/** Ids of a service are of all tenants: a key or an admin has one owner for ever. */
function carryRevocations(from: Database, to: Database): number {
  let revoked = 0;
  for (const table of ['service_keys', 'admins']) {
    for (const { id, at } of from.all<{ id: string; at: number }>(
      `SELECT id, revoked_at AS at FROM ${table} WHERE revoked_at IS NOT NULL`,
    )) {
      const sql = `UPDATE ${table} SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL`;
      revoked += to.run(sql, at, id);
    }
  }
  for (const { id, status } of from.all<{ id: string; status: string }>(
    "SELECT id, status FROM tenants WHERE status <> 'active'",
  )) {
    to.run("UPDATE tenants SET status = ? WHERE id = ? AND status = 'active'", status, id);
  }
  return revoked;
}

/** A secret that leaked and was replaced must not come back with the backup. */
function carryRotations(from: Database, to: Database): void {
  interface Rotated {
    readonly id: string;
    readonly hash: string;
    readonly retired: string;
    readonly at: number;
  }
  for (const { id, hash, retired, at } of from.all<Rotated>(
    'SELECT id, hash, retired, rotated_at AS at FROM service_keys WHERE rotated_at IS NOT NULL',
  )) {
    const sql = `UPDATE service_keys SET hash = ?, retired = ?, rotated_at = ?
      WHERE id = ? AND coalesce(rotated_at, 0) < ?`;
    to.run(sql, hash, retired, at, id, at);
  }
}

function purgedIn(database: Database): ReadonlyMap<string, readonly { readonly digest: string }[]> {
  const rows = database.all<{ space: string; digest: string }>(
    'SELECT s.name AS space, p.digest FROM purged p JOIN spaces s ON s.id = p.space',
  );
  return groupBy(rows, ({ space }) => space);
}
