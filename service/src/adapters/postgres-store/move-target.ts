import { asRecord, parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { contentDigest } from '../../../../src/core/memory/reference.ts';
import type { MovedBatch, MovedRow, MovedSpace, MovedTable } from '../service-store/move-source.ts';
import { capture } from './captures.ts';
import { Connections } from './connections.ts';
import { migrate, MOVE_NOTE, readSchema } from './migrations.ts';
import type { ServerAddress } from './server-url.ts';
import { Spaces } from '../memory/spaces.ts';
import { adding, counting, MOVE } from './statements/move.ts';
import { SCHEMA } from './statements/schema.ts';
import { keepStatistics, Statistics } from './statistics.ts';
import { TermKeys } from './term-keys.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/**
 * Writes a service's data from a file to PostgreSQL. The same row may come twice, because an interrupted move starts
 * again; existing records are skipped. No service starts on the database until the move has ended.
 */

export async function openMoveTarget(server: ServerAddress, now: number) {
  const connections = new Connections({ server });
  try {
    await migrate(connections.all, now);
    const { secret } = await readSchema(connections.all);
    if (secret === undefined) throw new MemoryError('unavailable', 'The tables were not made.');
    return targetOn(connections, new TermKeys(secret));
  } catch (error) {
    await connections.close();
    throw error;
  }
}

export type MoveTarget = Awaited<ReturnType<typeof openMoveTarget>>;

function targetOn(connections: Connections, keys: TermKeys) {
  // The database grows from empty to large within minutes, so the planner needs new statistics during the move.
  const statistics = new Statistics(async () => connections.all);
  return {
    /** Begins a move. Throws MemoryError if the database has data of a service, or of a move from another file. */
    begin: (epoch: string) => begin(connections, epoch),
    async addRows(table: MovedTable, rows: readonly MovedRow[]): Promise<void> {
      await connections.all.job((held) => held.run(adding(table), JSON.stringify(rows)));
    },
    /** Returns the number of records that the space has in PostgreSQL. */
    recordsIn: ({ tenant, space }: MovedSpace) =>
      connections.all.job(async (rows) => (await new Spaces(rows, tenant).state(space)).records),
    async addRecords({ tenant, space }: MovedSpace, { objects, now }: MovedBatch): Promise<void> {
      const batch = { space, ifGeneration: undefined, objects, now };
      const place = {
        tenant,
        keys: keys.of(tenant),
        bytesMax: Infinity,
        ignoresPlan: true as const,
      };
      await connections.all.job((rows) => capture(rows, place, batch));
    },
    /** Returns those digests for which PostgreSQL has no record, or a record whose bytes have another digest. */
    async wrongRecords(
      { tenant, space }: MovedSpace,
      digests: readonly string[],
    ): Promise<readonly string[]> {
      const found = await connections.all.job((rows) =>
        rows.all<{ digest: string; bytes: Uint8Array }>(MOVE.records, tenant, space, digests),
      );
      const whole = new Set(
        found
          .filter(({ digest, bytes }) => contentDigest(bytes) === digest)
          .map((one) => one.digest),
      );
      return digests.filter((digest) => !whole.has(digest));
    },
    /** Returns the bodies of these receipts, by their tenant and id with a blank between. */
    async receipts(rows: readonly MovedRow[]): Promise<ReadonlyMap<string, string>> {
      const [tenants, ids] = [rows.map((row) => row['tenant_id']), rows.map((row) => row['id'])];
      const found = await connections.all.job((held) =>
        held.all<{ tenant_id: string; id: string; body: string }>(
          MOVE.receipts,
          tenants.map(String),
          ids.map(String),
        ),
      );
      return new Map(found.map(({ tenant_id: tenant, id, body }) => [`${tenant} ${id}`, body]));
    },
    count: (table: MovedTable) =>
      connections.all.job(
        async (rows) => (await rows.get<{ count: number }>(counting(table)))?.count ?? 0,
      ),
    async end(epoch: string): Promise<void> {
      await keepStatistics(connections.all);
      await connections.all.job((rows) =>
        rows.run(SCHEMA.setMeta, MOVE_NOTE, noteOf(epoch, 'done')),
      );
    },
    async close(): Promise<void> {
      statistics.stop();
      await connections.close();
    },
  };
}

function begin(connections: Connections, epoch: string): Promise<'new' | 'resumed' | 'done'> {
  return connections.all.job(async (rows) => {
    await rows.get(SCHEMA.lockMeta);
    const noted = await rows.get<{ value: string }>(SCHEMA.getMeta, MOVE_NOTE);
    const { from, state } = asRecord(parseJson(noted?.value ?? ''));
    if (from === epoch) return state === 'done' ? 'done' : 'resumed';
    const used = await rows.get<{ used: boolean }>(MOVE.isUsed);
    if (noted !== undefined || used?.used === true) {
      throw new MemoryError('invalid', 'The database already contains another service.');
    }
    await rows.run(SCHEMA.putMeta, MOVE_NOTE, noteOf(epoch, 'running'));
    return 'new';
  });
}

function noteOf(from: string, state: 'running' | 'done'): string {
  return JSON.stringify({ from, state });
}
