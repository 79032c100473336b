import { createHash, randomBytes } from 'node:crypto';
import { asRecord, parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { newEpoch } from '../service-store/schema.ts';
import type { Rows, Transactions } from '../../ports/rows.ts';
import { MIGRATIONS, SCHEMA } from './statements/schema.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/**
 * Updates the tables to this version of svc by numbered migrations. Each runs once for all nodes. The database stores
 * the checksums of the migrations, so svc refuses a database whose migrations differ from its own.
 */

export interface Migration {
  readonly number: number;
  readonly checksum: string;
  readonly statements: readonly string[];
}

export interface SchemaState {
  readonly missing: readonly number[];
  /** The secret of the database; undefined if it has no tables yet. */
  readonly secret: Buffer | undefined;
  /** Set while a move from a file is unfinished, so that the database lacks data. */
  readonly isMoving?: true;
}

/** The name of the row in `service_meta` that says from which file data were moved, and whether the move has ended. */
export const MOVE_NOTE = 'move';

const SECRET_BYTES = 32;

export const KNOWN: readonly Migration[] = MIGRATIONS.map((statements, at) => ({
  number: at + 1,
  statements,
  checksum: createHash('sha256').update(statements.join(';\n')).digest('hex'),
}));

/** Runs the missing migrations in one transaction. Returns their numbers. */
export async function migrate(
  transactions: Transactions,
  now: number,
  known: readonly Migration[] = KNOWN,
): Promise<readonly number[]> {
  // If two nodes make the first tables at the same moment, one of them may fail. Its second attempt finds the tables.
  await transactions.job(makeMeta).catch(() => transactions.job(makeMeta));
  return transactions.job(async (rows) => {
    await rows.get(SCHEMA.lockMeta);
    const missing = missingOf(await rows.all<AppliedRow>(SCHEMA.applied), known);
    for (const { number, checksum, statements } of missing) {
      // oxlint-disable-next-line no-await-in-loop -- A statement may need the one before it.
      for (const statement of statements) await rows.run(statement);
      // oxlint-disable-next-line no-await-in-loop
      await rows.run(SCHEMA.apply, number, checksum, now);
    }
    return missing.map(({ number }) => number);
  });
}

/** Reads the state of the tables. Throws MemoryError if they are of a later version, or their migrations differ. */
export async function readSchema(
  transactions: Transactions,
  known: readonly Migration[] = KNOWN,
): Promise<SchemaState> {
  return transactions.read(async (rows) => {
    const made = await rows.get<{ found: number }>(SCHEMA.hasMeta);
    if ((made?.found ?? 0) < 2) {
      return { missing: known.map(({ number }) => number), secret: undefined };
    }
    const missing = missingOf(await rows.all<AppliedRow>(SCHEMA.applied), known);
    const meta = await rows.all<{ name: string; value: string }>(SCHEMA.meta);
    const valueOf = (wanted: string) => meta.find(({ name }) => name === wanted)?.value;
    const value = valueOf('index_key');
    const isMoving = asRecord(parseJson(valueOf(MOVE_NOTE) ?? ''))['state'] === 'running';
    return {
      missing: missing.map(({ number }) => number),
      secret: value === undefined ? undefined : Buffer.from(value, 'base64url'),
      ...(isMoving ? { isMoving } : {}),
    };
  });
}

/** Begins a new epoch after a restore. Earlier acknowledgements to clients are then invalid. */
export async function beginEpoch(transactions: Transactions): Promise<void> {
  await transactions.job(newEpochIn);
}

/** Sets a new epoch in a transaction. Every node then reads that anything may have changed, and drops its caches. */
export async function newEpochIn(rows: Rows): Promise<void> {
  await rows.run(SCHEMA.setMeta, 'epoch', newEpoch());
  await rows.run(SCHEMA.skipChanges);
}

interface AppliedRow {
  readonly number: number;
  readonly checksum: string;
}

async function makeMeta(rows: Rows): Promise<void> {
  await rows.run(SCHEMA.makeMeta);
  await rows.run(SCHEMA.makeMigrations);
  await rows.run(SCHEMA.putMeta, 'epoch', newEpoch());
  await rows.run(SCHEMA.putMeta, 'index_key', randomBytes(SECRET_BYTES).toString('base64url'));
}

function missingOf(applied: readonly AppliedRow[], known: readonly Migration[]): Migration[] {
  const checksums = new Map(known.map(({ number, checksum }) => [number, checksum]));
  for (const { number, checksum } of applied) {
    const own = checksums.get(number);
    if (own === undefined) {
      throw new MemoryError('unavailable', 'The database was made by a later version of svc.');
    }
    if (own !== checksum) {
      const message = `Migration ${number} of the database differs from that of this version.`;
      throw new MemoryError('unavailable', message);
    }
  }
  const done = new Set(applied.map(({ number }) => number));
  return known.filter(({ number }) => !done.has(number));
}
