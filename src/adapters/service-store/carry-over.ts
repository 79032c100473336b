import { randomBytes } from 'node:crypto';
import { batchesOf } from '../../core/bytes/batches.ts';
import { groupBy } from '../../core/bytes/group-by.ts';
import { PURGE_DIGESTS_MAX } from '../../core/memory-api/limits.ts';
import type { Database } from '../store/database.ts';
import type { CarriedOver } from '../../ports/service-store.ts';
import { ProviderTable } from './providers.ts';
import { Purges } from './purges.ts';
import { Spaces } from './spaces.ts';
import { VaultTable } from './vault-table.ts';

/** Takes over what a restore must not undo. Everything else of the present database is set aside. */

const BATCHES = { countMax: PURGE_DIGESTS_MAX, sizeMax: Infinity, sizeOf: () => 0 } as const;

export function carryOver(from: Database, to: Database, now: number): CarriedOver {
  carryRotations(from, to);
  carrySigningKeys(from, to, now);
  carryDeletedProviders(from, to);
  const revoked = carryRevocations(from, to);
  let purged = 0;
  const purges = new Purges(to, new Spaces(to));
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

/** A deleted provider stays deleted, and its secrets destroyed. The audit knows which ones were. */
function carryDeletedProviders(from: Database, to: Database): void {
  const table = new ProviderTable(to, new VaultTable(to));
  const sql = `SELECT tenant, json_extract(event, '$.target.id') AS id FROM audit
    WHERE json_extract(event, '$.kind') = 'provider.deleted'`;
  for (const { tenant, id } of from.all<{ tenant: string; id: string }>(sql)) {
    table.remove(tenant, id);
  }
}

/** Receipts that were signed since the backup can still be checked; nothing is signed with these. */
function carrySigningKeys(from: Database, to: Database, now: number): void {
  for (const { kid, x, at } of from.all<{ kid: string; x: string; at: number }>(
    'SELECT kid, x, created_at AS at FROM signing_keys',
  )) {
    const sql = `INSERT INTO signing_keys (kid, x, created_at, retired_at) VALUES (?, ?, ?, ?)
      ON CONFLICT DO NOTHING`;
    to.run(sql, kid, x, at, now);
  }
}

function purgedIn(database: Database): ReadonlyMap<string, readonly { readonly digest: string }[]> {
  const rows = database.all<{ space: string; digest: string }>(
    'SELECT s.name AS space, p.digest FROM purged p JOIN spaces s ON s.id = p.space',
  );
  return groupBy(rows, ({ space }) => space);
}
