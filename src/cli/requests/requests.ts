import { dataFolder } from '../../adapters/files/data-folder.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { limitOf, timeText } from '../listing.ts';
import { requestDetails } from './request-details.ts';
import type { OpenStore } from '../compose-store.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import { table } from '../text-table.ts';

/**
 * `svc requests`: one line a request, newest first, under a line that names the columns. What a state
 * means: `svc explain`. There is no text in the log to show.
 */

export interface RequestsOptions {
  readonly limit?: string;
  readonly id?: string;
  readonly json?: boolean;
}

const LIMIT = { fallback: 20, max: 1000 };

export async function listRequests(
  options: RequestsOptions,
  { environment, terminal }: CommandContext,
  openStore: OpenStore,
): Promise<void> {
  const limit = limitOf(options.limit, LIMIT);
  const report = (line: string): void => terminal.warn(line);
  const store = await openStore(dataFolder(environment), { report });
  try {
    const filter = options.id === undefined ? { limit } : { limit, id: options.id };
    const rows = await store.requests.list(filter);
    if (options.id !== undefined && rows.length === 0) {
      throw new CliError('No request has this id.', 'See the newest with: svc requests');
    }
    if (options.id !== undefined && new Set(rows.map(({ id }) => id)).size > 1) {
      throw new CliError('More than one request begins so.', 'Give more of its id.');
    }
    if (options.json === true) terminal.json(rows);
    else if (options.id !== undefined)
      for (const line of rows.flatMap(requestDetails)) terminal.out(line);
    else if (rows.length > 0) listRows(rows, terminal);
    if (rows.length === 0) terminal.note('No request went through svc yet.');
  } finally {
    await store.close();
  }
}

/** As much of an id as tells it from others; any beginning of it is enough for `svc requests ID`. */
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

function listRows(rows: readonly RequestRow[], terminal: Terminal): void {
  const cells = rows.map((row) => [
    timeText(row.at),
    terminal.isWatched ? row.id.slice(0, ID_CHARS) : row.id,
    String(row.status),
    row.kind === 'main' ? row.client : `${row.client}/${row.kind}`,
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
