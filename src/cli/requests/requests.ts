import { spaceNames } from '../../adapters/projects/registry.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { PROBE_SPACE } from '../../core/request/space.ts';
import { requestReport } from '../../core/meter/request-report.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { limitOf, timeText } from '../listing.ts';
import { requestDetails } from './request-details.ts';
import type { CliStore, OpenStore } from '../compose-store.ts';
import { retrieveFrom } from '../memory/memory.ts';
import { carriedBlocks } from '../../local/ui/request-page.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import { table, wrapped } from '../text-table.ts';

/**
 * `svc requests`: one line a request, newest first, under a line that names the columns. One request
 * in full explains its states. There is no text in the log; one request in full quotes
 * the memories behind its references.
 */

export interface RequestsOptions {
  readonly limit?: string;
  readonly id?: string;
  readonly json?: boolean;
  readonly report?: boolean;
}

const LIMIT = { fallback: 20, max: 1000 };

export async function listRequests(
  options: RequestsOptions,
  { environment, terminal }: CommandContext,
  openStore: OpenStore,
): Promise<void> {
  const limit = limitOf(options.limit, LIMIT);
  if (options.report === true && options.id === undefined) {
    throw new CliError('--report needs the id of a request.', 'See: svc requests', 2);
  }
  const report = (line: string): void => terminal.warn(line);
  // One request in full quotes memories, wherever they are.
  const where = options.id === undefined ? {} : { environment };
  const store = await openStore(dataFolder(environment), { ...where, report });
  try {
    const filter = options.id === undefined ? { limit } : { limit, id: options.id };
    const rows = await store.requests.list(filter);
    if (options.id !== undefined && rows.length === 0) {
      throw new CliError('No request has this id.', 'See the newest with: svc requests');
    }
    if (options.id !== undefined && new Set(rows.map(({ id }) => id)).size > 1) {
      throw new CliError('More than one id begins with this.', 'Give more of its id.');
    }
    const [first] = rows;
    if (options.report === true && first !== undefined && options.id !== undefined) {
      terminal.out(requestReport(first));
    } else if (options.json === true) terminal.json(rows);
    else if (options.id !== undefined) {
      for (const row of rows) await showOne(named(row, environment), store, terminal);
    } else if (rows.length > 0) listRows(rows, terminal);
    if (rows.length === 0) terminal.note('svc has handled no request yet.');
  } finally {
    await store.close();
  }
}

/** With the name of its project that a person reads. */
function named(row: RequestRow, environment: CommandContext['environment']): RequestRow {
  return { ...row, space: spaceNames(dataFolder(environment), [row.space]).of(row.space) };
}

async function showOne(row: RequestRow, store: CliStore, terminal: Terminal): Promise<void> {
  const columns = terminal.columns(Infinity);
  const wide = ' '.repeat(14);
  for (const line of requestDetails(row)) {
    for (const part of wrapped(line, columns, wide)) terminal.out(part);
  }
  await showBlocks(row, store, terminal);
  await quote('Left out', row.elidedRefs ?? [], { store, terminal });
}

/** The added texts, word for word: the client's bytes had none of them. */
async function showBlocks(
  row: RequestRow,
  { ledger }: CliStore,
  terminal: Terminal,
): Promise<void> {
  const blocks = await carriedBlocks(ledger, row);
  for (const [at, { block }] of blocks.entries()) {
    terminal.out('');
    terminal.out(blocks.length === 1 ? 'Added:' : `Added, ${at + 1} of ${blocks.length}:`);
    const text = block === '' ? '(forgotten since)' : block;
    terminal.outText(terminal.isWatched ? text : `${text}\n`);
  }
}

/** The texts behind references, each on one line. */
async function quote(
  title: string,
  refs: readonly string[],
  { store, terminal }: { readonly store: CliStore; readonly terminal: Terminal },
): Promise<void> {
  if (refs.length === 0) return;
  terminal.out('');
  terminal.out(`${title}:`);
  const columns = Math.max(20, Math.min(terminal.columns(QUOTE_COLUMNS), QUOTE_COLUMNS) - 22);
  for (const ref of refs) {
    // oxlint-disable-next-line no-await-in-loop -- Some ten short reads, in the order of the block.
    const found = await retrieveFrom(store, ref).catch(() => undefined);
    const text = oneLine(found?.text ?? '(forgotten since, or not available)', columns);
    terminal.out(`  ${ref}  ${text}`);
  }
}

const QUOTE_COLUMNS = 160;

/** Enough of an id to be unique; any beginning of it is enough for `svc requests ID`. */
const ID_CHARS = 12;
const HEAD = [
  'time',
  'request',
  'status',
  'client',
  'memory',
  'shortening',
  'in',
  'sent',
  'recalled',
];
/** The most important first: a narrow screen shows fewer columns, and each of them whole. */
const LEFT = [0, 1, 2, 3, 4, 5, 9, 10];

/** The requests of `svc doctor --live` are svc's own. */
function clientText({ space, client, kind }: RequestRow): string {
  if (space === PROBE_SPACE) return 'svc doctor';
  return kind === 'main' ? client : `${client}/${kind}`;
}

function listRows(rows: readonly RequestRow[], terminal: Terminal): void {
  const cells = rows.map((row) => [
    timeText(row.at),
    terminal.isWatched ? row.id.slice(0, ID_CHARS) : row.id,
    String(row.status),
    clientText(row),
    row.memoryState,
    row.continuityState,
    String(row.originalInputTokens),
    String(row.forwardedInputTokens),
    String(row.recalledTokens),
    row.end,
    row.model,
  ]);
  const all = [[...HEAD, 'end', 'model'], ...cells].map((row) =>
    row.map((cell) => oneLine(cell, 40)),
  );
  const [head = '', ...lines] = table(all, { columns: terminal.columns(400), left: LEFT });
  terminal.out(terminal.colors.bold(head));
  for (const line of lines) terminal.out(line);
}
