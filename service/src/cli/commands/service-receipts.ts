import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { linesOfFile } from '../../../../src/adapters/files/lines.ts';
import { CliError, type ExitCode } from '../../../../src/cli/cli-error.ts';
import type { Call, CommandContext } from '../../../../src/cli/context.ts';
import { count } from '../../../../src/cli/listing.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import {
  asList,
  asRecord,
  asText,
  type Fields,
  parseJson,
} from '../../../../src/core/bytes/json-fields.ts';
import { isoDay, isoTime } from '../../../../src/core/memory/times.ts';
import { publicJwk } from '../../core/jws.ts';
import { type AuditResult, ReceiptAudit } from '../../core/receipt-audit.ts';
import { DEFAULT_TENANT, SERVICE_TENANT } from '../../core/tenants.ts';
import type { TenantStore } from '../../ports/service-store.ts';
import { timeOptions } from '../../server/console/operation.ts';
import { underLease } from '../../server/leases.ts';
import { dropOld, RECEIPTS_LEASE } from '../../server/jobs.ts';
import { recoverIn } from '../compose-parts.ts';
import {
  type CommonOptions,
  type ConsoleAccess,
  type ConsoleOptions,
  folderOf,
  listAll,
  pagesOf,
  storeError,
  withConsole,
  withServiceStore,
} from './service-context.ts';
import { valuesOf } from './run-command.ts';

/** Runs `svc-service receipts`: exports, archives and recovers receipts, and verifies them without the service. */

export interface ExportOptions extends ConsoleOptions {
  readonly from?: string;
  readonly to?: string;
}

interface VerifyOptions {
  /** Path of a file with a JWKS, as returned by /.well-known/svc/receipt-keys.json. */
  readonly keys?: string;
  /** True if the files have only a part of the receipts, such as those of some days. */
  readonly partial?: boolean;
  readonly json?: boolean;
}

/**
 * The files of an export: the receipts; the signed heads, which state how many receipts each node has, with the
 * tenant's total; and the public keys that verify them.
 */
const FILES = { receipts: 'receipts.ndjson', heads: 'heads.ndjson', keys: 'keys.json' } as const;

/** Exports receipts to a folder, which must not contain an export yet. */
export async function exportReceipts(
  folder: string,
  options: ExportOptions,
  context: CommandContext,
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const write = (name: string, text: string, flag: 'wx' | 'a') =>
    writeFile(join(folder, name), text, { flag, mode: 0o600 });
  await write(FILES.receipts, '', 'wx').catch(() => {
    const hint = 'Name another folder: svc never overwrites an export.';
    throw new CliError(`${folder} contains an export already, or cannot be written.`, hint, 2);
  });
  const row = { name: 'receipts export', options: timeOptions('from', 'to') };
  const filter = await valuesOf(row, options, context);
  const written = await withConsole(options, context, async (console) => {
    // Read the total before the heads. The heads state how many receipts each node made, and the audit reports receipts
    // missing if the total is higher than their sum. A receipt that is stored between the two reads is only in a head.
    const { total } = await console.call({ method: 'GET', path: 'requests/heads' });
    const heads = await listAll(console, 'requests/heads');
    await write(FILES.heads, linesOf([...heads, asRecord(total)]), 'wx');
    await write(FILES.keys, `${JSON.stringify({ keys: await keysOf(console) })}\n`, 'wx');
    let receipts = 0;
    for await (const page of receiptPages(console, filter)) {
      await write(FILES.receipts, linesOf(page), 'a');
      receipts += page.length;
    }
    return receipts;
  });
  const isPart = options.from !== undefined || options.to !== undefined;
  if (options.json === true) context.terminal.json({ folder, receipts: written });
  context.terminal.note(
    `${count(written, 'receipt')} in ${folder}. Check them: svc-service receipts verify ${folder}${isPart ? ' --partial' : ''}`,
  );
}

function receiptPages(console: ConsoleAccess, filter: Fields): AsyncGenerator<readonly Fields[]> {
  const named = Object.entries(filter).map(([name, value]) => [name, String(value)]);
  return pagesOf(console, 'requests', { ...Object.fromEntries(named), order: 'asc', limit: '100' });
}

function linesOf(values: readonly Fields[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

async function keysOf(console: ConsoleAccess): Promise<readonly object[]> {
  const { data } = await console.call({ method: 'GET', path: 'signing' });
  return asList(data).map((row) => publicJwk(asText(asRecord(row)['x'])));
}

/**
 * Verifies receipts. Returns exit code 1 if a signature is not valid, if two receipts have one number, if a receipt is
 * missing, or if the files have none.
 */
export async function verifyReceipts({
  args: [path = ''],
  options,
  context,
}: Call<VerifyOptions>): Promise<ExitCode> {
  const { terminal } = context;
  const files = await filesAt(path);
  const audit = new ReceiptAudit(await keysFor(path, options));
  for (const file of files) {
    // oxlint-disable-next-line no-await-in-loop -- One file after the other.
    await takeFile(file, audit);
  }
  const result = audit.result({ isPartial: options.partial === true });
  if (options.json === true) terminal.json(result);
  else for (const line of findingsOf(result)) terminal.out(line);
  const { receipts, wrong, missing, unknown, endless } = result;
  const gone =
    missing.reduce((sum, { from, to }) => sum + to - from + 1, 0) +
    unknown.reduce((sum, { count: of }) => sum + of, 0);
  terminal.note(`${count(receipts, 'receipt')}, ${wrong.length} wrong, ${gone} missing.`);
  for (const tenant of endless) {
    terminal.warn(
      `Nothing signed says here how many receipts ${oneLine(tenant, 64)} has, so none that was cut off at the end is missed. heads.ndjson of an export says it.`,
    );
  }
  return wrong.length === 0 && gone === 0 && receipts > 0 ? 0 : 1;
}

const WORDS = {
  unsigned: 'is not signed',
  unknown_key: 'is signed with a key that is not among these',
  invalid: 'differs from the signed receipt',
  twice: 'has the same number as another receipt',
} as const;

function findingsOf({ wrong, missing, unknown }: AuditResult): readonly string[] {
  return [
    ...wrong.map(({ id, outcome }) => `${oneLine(id, 64)}  ${WORDS[outcome]}`),
    ...missing.map(({ tenant, node, from, to }) => {
      const numbers = from === to ? `number ${from}` : `numbers ${from} to ${to}`;
      return `${oneLine(tenant, 64)} ${oneLine(node, 64)}  ${numbers} missing`;
    }),
    ...unknown.map(
      ({ tenant, count: of }) =>
        `${oneLine(tenant, 64)}  ${count(of, 'receipt')} missing that no head accounts for: of a node or of the end of one`,
    ),
  ];
}

/** Returns the path itself if it is a file, or the NDJSON files of a folder, sorted by name. */
async function filesAt(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => NDJSON.test(name));
    return names.toSorted((one, other) => (one < other ? -1 : 1)).map((name) => join(path, name));
  } catch {
    throw unreadable(path);
  }
}

/**
 * Adds the receipts, heads and totals in a file to the audit. A file that is not NDJSON has one of these, an array of
 * them, or a list from the API, whose array is in `data`.
 */
async function takeFile(file: string, audit: ReceiptAudit): Promise<void> {
  const whole = NDJSON.test(file) ? undefined : parseJson(await textOfFile(file));
  if (whole !== undefined) {
    const { data = whole } = asRecord(whole);
    for (const value of Array.isArray(data) ? data : [data]) audit.take(value);
    return;
  }
  try {
    for await (const line of linesOfFile(file)) {
      const value = line.trim() === '' ? undefined : parseJson(line);
      if (value !== undefined) audit.take(value);
      else if (line.trim() !== '') throw notReceipts(file);
    }
  } catch (error) {
    throw error instanceof CliError ? error : unreadable(file);
  }
}

const NDJSON = /\.ndjson(?:\.gz)?$/;

function notReceipts(file: string): CliError {
  const hint = 'Give a receipt, a list of them, or NDJSON.';
  return new CliError(`${file} does not contain receipts.`, hint, 2);
}

/**
 * Bound on a file that is read whole, in bytes. A longer one counts as a file without JSON. A list from the API has 300
 * kB.
 */
const WHOLE_BYTES_MAX = 64 << 20;

async function textOfFile(file: string): Promise<string> {
  try {
    return (await stat(file)).size > WHOLE_BYTES_MAX ? '' : await readFile(file, 'utf8');
  } catch {
    throw unreadable(file);
  }
}

async function keysFor(
  path: string,
  { keys }: VerifyOptions,
): Promise<readonly { kid: string; x: string }[]> {
  const file = keys ?? join(path, FILES.keys);
  const text = await textOfFile(file);
  const found = asList(asRecord(parseJson(text))['keys']).map(asRecord);
  if (found.length > 0) return found.map(({ kid, x }) => ({ kid: asText(kid), x: asText(x) }));
  const hint = 'Fetch it: curl https://HOST/.well-known/svc/receipt-keys.json > keys.json';
  throw new CliError(`${file} contains no public keys.`, hint, 2);
}

function unreadable(file: string): CliError {
  const hint = 'Check its name and its mode. Give --keys if the folder contains no keys.';
  return new CliError(`${file} cannot be read.`, hint, 2);
}

export async function recoverCommand({ options, context }: Call<CommonOptions>): Promise<void> {
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

interface ArchiveOptions extends ConsoleOptions {
  /** The age in days from which receipts are archived. */
  readonly olderThan?: string;
}

const DAY_MS = 86_400_000;
const KEPT_DAYS = 90;

/** Writes old receipts to one file per day, and deletes a day's receipts from the database once its file is synced. */
export async function archiveReceipts({
  args: [folder = ''],
  options,
  context,
}: Call<ArchiveOptions>): Promise<void> {
  if (options.url !== undefined) {
    const hint = 'Run it on the machine of the service, without --url.';
    throw new CliError('An archive needs the database of this machine.', hint, 2);
  }
  const before = firstKeptDay(options.olderThan);
  const tenant = options.tenant ?? DEFAULT_TENANT;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const place = { folder: folderOf(options, context), environment: context.environment };
  const done = await withConsole(options, context, async (console) => {
    const query = { to: before, group_by: 'day', from: '2000-01-01' };
    const days = (await listAll(console, 'usage', query)).map(({ day }) => asText(day));
    return withServiceStore(place, (store) => {
      const needs = { store: store.of(SERVICE_TENANT), randomBytes };
      return underLease(needs, RECEIPTS_LEASE, async () => {
        let receipts = 0;
        for (const day of days.filter((one) => one < before)) {
          const path = join(folder, `receipts-${tenant}-${day}.ndjson.gz`);
          // oxlint-disable-next-line no-await-in-loop -- One day after the other.
          receipts += await archiveDay(console, day, path, store.of(tenant));
        }
        return receipts;
      });
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

/**
 * Writes a day's receipts to a file, and deletes all receipts up to the end of this day. Returns how many it deleted.
 * Does nothing for a day without receipts.
 */
async function archiveDay(
  console: ConsoleAccess,
  day: string,
  path: string,
  store: TenantStore,
): Promise<number> {
  const from = Date.parse(day);
  const to = from + DAY_MS;
  const filter = { from: isoTime(from), to: isoTime(to) };
  let lines = '';
  for await (const page of receiptPages(console, filter)) lines += linesOf(page);
  if (lines === '') return 0;
  await writeWhole(path, lines);
  return dropOld(store, to);
}

/**
 * Writes and syncs a compressed file. A file that exists with the same text stays, because an earlier run wrote it.
 * Throws CliError if it has another text.
 */
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

/** Returns the first day, in UTC, whose receipts stay in the database. */
function firstKeptDay(days = String(KEPT_DAYS)): string {
  const kept = /^\d{1,5}d?$/.test(days) ? Number.parseInt(days, 10) : Number.NaN;
  if (Number.isNaN(kept) || kept < 1) {
    throw new CliError('--older-than: expected days.', 'Try --older-than 90d', 2);
  }
  return isoDay(Date.now() - kept * DAY_MS);
}
