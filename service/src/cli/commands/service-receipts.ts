import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { linesOfFile } from '../../../../src/adapters/files/lines.ts';
import { asList, asRecord, parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { publicJwk } from '../../core/jws.ts';
import { type AuditResult, ReceiptAudit } from '../../core/receipt-audit.ts';
import { CliError, type ExitCode } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { count, limitOf, timeText } from '../../../../src/cli/listing.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { type ConsoleOptions, listAll, withConsole } from './console-access.ts';
import { type ConsoleAccess, type Fields, textOf, timeOf } from './console-fields.ts';

/** `svc-service receipts`: signed receipts, listed, kept as files, and checked without the service. */

export interface ListOptions extends ConsoleOptions {
  readonly limit?: string;
  readonly status?: string;
  readonly model?: string;
  readonly key?: string;
  readonly provider?: string;
  readonly from?: string;
  readonly to?: string;
}

export interface VerifyOptions {
  /** A JWKS, as /.well-known/svc/receipt-keys.json gives it. */
  readonly keys?: string;
  /** The receipts are those of some days alone. */
  readonly partial?: boolean;
  readonly json?: boolean;
}

export async function listReceipts(options: ListOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const limit = limitOf(options.limit, { fallback: 20, max: 100 });
  const query = { ...filterOf(options), limit: String(limit) };
  const page = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'requests', query }),
  );
  const receipts = asList(page['data']).map(asRecord);
  if (options.json === true) {
    terminal.json(receipts);
    return;
  }
  const rows = receipts.map((receipt) => [
    textOf(receipt['receipt_id']),
    timeText(timeOf(receipt['created_at']) ?? 0),
    [textOf(receipt['status']), numberText(receipt['http_status'])].join(' ').trim(),
    textOf(receipt['model_requested']) || '-',
    `${numberText(receipt['forwarded_input_tokens'])} in`,
    `${numberText(receipt['output_tokens']) || '?'} out`,
    `${numberText(asRecord(receipt['latency_ms'])['total'])} ms`,
  ]);
  const shape = { columns: terminal.columns(160), left: [0, 1, 2, 3] };
  for (const line of table(rows, shape)) terminal.out(line);
}

export async function getReceipt(
  id: string,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  if (!/^rcpt_[0-9a-z]{26}$/.test(id)) {
    const hint = 'The id is in the header x-svc-receipt-id of the answer, and in the list.';
    throw new CliError('This is not the id of a receipt.', hint, 2);
  }
  const receipt = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: `requests/${id}` }),
  );
  context.terminal.json(receipt);
}

/** Files of one folder: receipts, heads, and the public keys to check them with. */
const FILES = { receipts: 'receipts.ndjson', heads: 'heads.ndjson', keys: 'keys.json' } as const;

/** Never over a folder that holds an export already. */
export async function exportReceipts(
  folder: string,
  options: ListOptions,
  context: CommandContext,
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const write = (name: string, text: string, flag: 'wx' | 'a') =>
    writeFile(join(folder, name), text, { flag, mode: 0o600 });
  await write(FILES.receipts, '', 'wx').catch(() => {
    const hint = 'Name another folder: svc never overwrites an export.';
    throw new CliError(`${folder} contains an export already, or cannot be written.`, hint, 2);
  });
  const written = await withConsole(options, context, async (console) => {
    // The total first: what is stored meanwhile is in the heads alone.
    const { total } = await console.call({ method: 'GET', path: 'requests/heads' });
    const heads = await listAll(console, 'requests/heads');
    await write(FILES.heads, linesOf([...heads, asRecord(total)]), 'wx');
    await write(FILES.keys, `${JSON.stringify({ keys: await keysOf(console) })}\n`, 'wx');
    let receipts = 0;
    for await (const page of receiptPages(console, filterOf(options))) {
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

/** Oldest first. */
export async function* receiptPages(
  console: ConsoleAccess,
  filter: Readonly<Record<string, string>>,
): AsyncGenerator<readonly Fields[]> {
  let after: string | undefined;
  do {
    const more = after === undefined ? {} : { after };
    const query = { ...filter, ...more, order: 'asc', limit: '100' };
    // Each page says where the next one begins.
    // oxlint-disable-next-line no-await-in-loop
    const page = await console.call({ method: 'GET', path: 'requests', query });
    yield asList(page['data']).map(asRecord);
    after = typeof page['next_cursor'] === 'string' ? page['next_cursor'] : undefined;
  } while (after !== undefined);
}

export function linesOf(values: readonly Fields[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join('');
}

async function keysOf(console: ConsoleAccess): Promise<readonly object[]> {
  const { data } = await console.call({ method: 'GET', path: 'signing' });
  return asList(data).map((row) => publicJwk(textOf(asRecord(row)['x'])));
}

/** Exit 1 when one is not as it was signed, or is missing. */
export async function verifyReceipts(
  path: string,
  options: VerifyOptions,
  context: CommandContext,
): Promise<ExitCode> {
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
  const { receipts, wrong, missing, unknown } = result;
  const gone =
    missing.reduce((sum, { from, to }) => sum + to - from + 1, 0) +
    unknown.reduce((sum, { count: of }) => sum + of, 0);
  terminal.note(`${count(receipts, 'receipt')}, ${wrong.length} wrong, ${gone} missing.`);
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

/** A file, or those of a folder that hold receipts and heads. */
async function filesAt(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => NDJSON.test(name));
    return names.toSorted((one, other) => (one < other ? -1 : 1)).map((name) => join(path, name));
  } catch {
    throw unreadable(path);
  }
}

/** One object a line; any other file is one object, a list of the API, or what `--json` prints. */
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

/** A list of the API has 300 kB; a longer file is one object a line. */
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
  if (found.length > 0) return found.map(({ kid, x }) => ({ kid: textOf(kid), x: textOf(x) }));
  const hint = 'Fetch it: curl https://HOST/.well-known/svc/receipt-keys.json > keys.json';
  throw new CliError(`${file} contains no public keys.`, hint, 2);
}

function filterOf(options: ListOptions): Readonly<Record<string, string>> {
  const { status, model, key, provider, from, to } = options;
  return {
    ...(status === undefined ? {} : { status }),
    ...(model === undefined ? {} : { model }),
    ...(key === undefined ? {} : { api_key_id: key }),
    ...(provider === undefined ? {} : { provider_id: provider }),
    ...(from === undefined ? {} : { from: timeIn(from, '--from <when>') }),
    ...(to === undefined ? {} : { to: timeIn(to, '--to <when>') }),
  };
}

/** A day means its beginning, UTC. */
export function timeIn(text: string, flag: string): string {
  const at = Date.parse(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(at)) return new Date(at).toISOString();
  throw new CliError(`${flag}: expected a day or a time.`, 'Give it as 2026-11-20.', 2);
}

function numberText(value: unknown): string {
  return typeof value === 'number' ? String(value) : '';
}

function unreadable(file: string): CliError {
  const hint = 'Check its name and its mode. Give --keys if the folder contains no keys.';
  return new CliError(`${file} cannot be read.`, hint, 2);
}
