import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { asList, asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { DEFAULT_TENANT, SERVICE_TENANT } from '../../core/tenants.ts';
import type { ServiceStore } from '../../ports/service-store.ts';
import { underLease } from '../../server/leases.ts';
import { dropOld, RECEIPTS_LEASE } from '../../server/retention.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';
import { recoverIn } from '../compose-receipts.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { count } from '../../../../src/cli/listing.ts';
import { type ConsoleOptions, withConsole } from './console-access.ts';
import { textOf } from './console-fields.ts';
import { folderOf, type FolderOption, storeError, withServiceStore } from './service-context.ts';
import { linesOf, receiptPages } from './service-receipts.ts';

/** `svc-service receipts recover` and `archive`: what a service does on its own, done by a person. */

export interface RecoverOptions extends FolderOption {
  readonly json?: boolean;
}

export async function recoverCommand(
  options: RecoverOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal, environment } = context;
  const found = await recoverIn(folderOf(options, context), environment).catch((error: unknown) => {
    throw storeError(error);
  });
  if (options.json === true) terminal.json(found);
  const { receipts, unknown, nodes } = found;
  terminal.note(
    nodes === 0
      ? 'No receipts are waiting.'
      : `${count(receipts, 'receipt')} stored, ${unknown} of them unknown: their process died.`,
  );
}

export interface ArchiveOptions extends ConsoleOptions {
  /** Days. */
  readonly olderThan?: string;
}

const DAY_MS = 86_400_000;
const KEPT_DAYS = 90;

/** A file for each day, then they leave the database. Their signatures stay as they were. */
export async function archiveReceipts(
  folder: string,
  options: ArchiveOptions,
  context: CommandContext,
): Promise<void> {
  if (options.url !== undefined) {
    const hint = 'Run it on the machine of the service, without --url.';
    throw new CliError('An archive needs the database of this machine.', hint, 2);
  }
  const before = firstKeptDay(options.olderThan);
  const tenant = options.tenant ?? DEFAULT_TENANT;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const days = await withConsole(options, context, async (console) => {
    const query = { to: before, group_by: 'day', from: '2000-01-01' };
    const usage = await console.call({ method: 'GET', path: 'usage', query });
    const all = asList(usage['data']).map((row) => textOf(asRecord(row)['day']));
    return all.filter((day) => day < before);
  });
  const place = { folder: folderOf(options, context), environment: context.environment };
  const done = await withServiceStore(place, (store) => {
    const needs = { store: store.of(SERVICE_TENANT), randomBytes };
    return underLease(needs, RECEIPTS_LEASE, async () => {
      let receipts = 0;
      for (const day of days) {
        // oxlint-disable-next-line no-await-in-loop -- One day after the other.
        receipts += await archiveDay(folder, { day, tenant, store }, { options, context });
      }
      return receipts;
    });
  });
  if (done === undefined) {
    const hint = 'Try again in a minute.';
    throw new CliError('Another process is archiving receipts now.', hint);
  }
  const archived = done.result;
  if (options.json === true) context.terminal.json({ folder, receipts: archived });
  context.terminal.note(`${count(archived, 'receipt')} archived in ${folder}.`);
}

interface OneDay {
  readonly day: string;
  readonly tenant: string;
  readonly store: ServiceStore;
}

async function archiveDay(
  folder: string,
  { day, tenant, store }: OneDay,
  { options, context }: { readonly options: ArchiveOptions; readonly context: CommandContext },
): Promise<number> {
  const from = Date.parse(day);
  const to = from + DAY_MS;
  const filter = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  const path = join(folder, `receipts-${tenant}-${day}.ndjson.gz`);
  const lines = await withConsole(options, context, async (console) => {
    const parts: string[] = [];
    for await (const page of receiptPages(console, filter)) parts.push(linesOf(page));
    return parts.join('');
  });
  if (lines === '') return 0;
  await writeWhole(path, lines);
  return dropOld(store.of(tenant), to);
}

/** On disk before anything leaves the database; a file that a killed run left is taken as it is. */
async function writeWhole(path: string, text: string): Promise<void> {
  const there = await readFile(path).catch(() => undefined);
  if (there !== undefined) {
    if (textIn(there) === text) return;
    throw new CliError(`${path} exists already.`, 'Name another folder for this archive.');
  }
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(gzipSync(text));
    await file.sync();
  } finally {
    await file.close();
  }
}

function textIn(bytes: Uint8Array): string | undefined {
  try {
    return gunzipSync(bytes).toString('utf8');
  } catch {
    return undefined;
  }
}

/** The day of UTC from which on receipts stay. */
function firstKeptDay(days = String(KEPT_DAYS)): string {
  const kept = /^\d{1,5}d?$/.test(days) ? Number.parseInt(days, 10) : Number.NaN;
  if (Number.isNaN(kept) || kept < 1) {
    throw new CliError('--older-than: expected days.', 'Try --older-than 90d', 2);
  }
  return new Date(Date.now() - kept * DAY_MS).toISOString().slice(0, 'YYYY-MM-DD'.length);
}
