import { type MoveTarget, openMoveTarget } from '../adapters/postgres-store/move-target.ts';
import type { ServerAddress } from '../adapters/postgres-store/server-url.ts';
import { lockServiceFolder } from '../adapters/service-store/database.ts';
import {
  MOVED_TABLES,
  type MoveSource,
  openMoveSource,
  TABLES_BEHIND,
} from '../adapters/service-store/move-source.ts';
import { asRecord, parseJson } from '../../../src/core/bytes/json-fields.ts';
import { verifyObject } from '../core/jws.ts';
import { CliError } from '../../../src/cli/cli-error.ts';

export interface MoveFacts {
  readonly records: number;
  readonly receipts: number;
  /** The number of receipts without a valid signature. The move changes no signature, so they had none in the file. */
  readonly unsigned: number;
  /** True if an earlier run had copied everything already. */
  readonly wasDone: boolean;
}

/**
 * Copies a service's data from its file to PostgreSQL and checks the copy. A second run continues an interrupted one.
 * Throws CliError, MemoryError and FileError.
 */
export async function moveService(
  folder: string,
  server: ServerAddress,
  tell: (line: string) => void,
): Promise<MoveFacts> {
  const lock = lockServiceFolder(folder);
  if (lock === undefined) {
    throw new CliError(
      'An svc service runs on this folder.',
      'Stop it first, because the move would miss its new records: svc-service stop',
    );
  }
  try {
    const source = openMoveSource(folder);
    try {
      return await moveBetween(source, await openMoveTarget(server, Date.now()), tell);
    } finally {
      source.close();
    }
  } finally {
    lock.close();
  }
}

async function moveBetween(
  source: MoveSource,
  target: MoveTarget,
  tell: (line: string) => void,
): Promise<MoveFacts> {
  try {
    if (source.unfinishedPurges > 0) {
      const hint = 'Start the service once: it finishes them. Then stop it and move.';
      throw new CliError('A purge is not finished yet.', hint);
    }
    const begun = await target.begin(source.epoch);
    if (begun === 'resumed') tell('Continuing an earlier move.');
    if (begun !== 'done') await copy(source, target, tell);
    tell('Everything is copied. Checking each record and each receipt in the new database.');
    const records = await checkRecords(source, target);
    const { receipts, unsigned } = await checkReceipts(source, target);
    await checkCounts(source, target);
    await target.end(source.epoch);
    return { records, receipts, unsigned, wasDone: begun === 'done' };
  } finally {
    await target.close();
  }
}

/* oxlint-disable no-await-in-loop -- One after the other, because later rows refer to earlier ones. */

async function copy(
  source: MoveSource,
  target: MoveTarget,
  tell: (line: string) => void,
): Promise<void> {
  for (const table of MOVED_TABLES) {
    for (const rows of source.rowsOf(table)) await target.addRows(table, rows);
  }
  for (const space of source.spaces()) {
    const held = await target.recordsIn(space);
    for (const batch of source.recordsOf(space, held)) await target.addRecords(space, batch);
    tell(`${space.space}: ${space.records} records`);
  }
  for (const table of TABLES_BEHIND) {
    for (const rows of source.rowsOf(table)) await target.addRows(table, rows);
  }
}

async function checkRecords(source: MoveSource, target: MoveTarget): Promise<number> {
  let records = 0;
  for (const space of source.spaces()) {
    for (const { objects } of source.recordsOf(space, 0)) {
      const digests = objects.map(({ digest }) => digest);
      const wrong = await target.wrongRecords(space, digests);
      if (wrong.length > 0) throw notWhole(`${wrong.length} records of ${space.space}`);
      records += digests.length;
    }
    if ((await target.recordsIn(space)) !== space.records) throw notWhole(space.space);
  }
  return records;
}

async function checkReceipts(source: MoveSource, target: MoveTarget) {
  const rowsOfKeys = [...source.rowsOf('signing_keys')].flat();
  const keys = rowsOfKeys.map(({ kid, x }) => ({ kid: String(kid), x: String(x) }));
  let [receipts, unsigned] = [0, 0];
  for (const rows of source.rowsOf('receipts')) {
    const held = await target.receipts(rows);
    for (const { tenant_id: tenant, id, body } of rows) {
      const text = held.get(`${tenant} ${id}`);
      if (text === undefined || text !== body) throw notWhole(`receipt ${id}`);
      if (verifyObject(asRecord(parseJson(text)), keys) !== 'valid') unsigned += 1;
      receipts += 1;
    }
  }
  return { receipts, unsigned };
}

async function checkCounts(source: MoveSource, target: MoveTarget): Promise<void> {
  for (const table of MOVED_TABLES) {
    let rows = 0;
    for (const page of source.rowsOf(table)) rows += page.length;
    if ((await target.count(table)) < rows) throw notWhole(`the table ${table}`);
  }
}

/* oxlint-enable no-await-in-loop */

function notWhole(what: string): CliError {
  const hint = 'The file is unchanged. Move to an empty database, and report this.';
  return new CliError(`The copy of ${what} differs from the file.`, hint);
}
