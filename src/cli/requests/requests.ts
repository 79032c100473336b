import { dataFolder } from '../../adapters/files/data-folder.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { limitOf, timeText } from '../listing.ts';
import { requestDetails } from './request-details.ts';
import type { OpenStore } from '../memory/store-for-cli.ts';
import { oneLine } from '../terminal.ts';

/** `svc requests`: one line a request, newest first. There is no text in the log to show. */

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
    if (options.json === true) terminal.json(rows);
    else if (options.id !== undefined)
      for (const line of rows.flatMap(requestDetails)) terminal.out(line);
    else for (const row of rows) terminal.out(rowText(row));
    if (rows.length === 0) terminal.note('No request went through svc yet.');
  } finally {
    await store.close();
  }
}

function rowText(row: RequestRow): string {
  const { originalInputTokens: received, forwardedInputTokens: sent } = row;
  const cells = [
    timeText(row.at),
    row.id,
    String(row.status),
    `${row.client}/${row.kind}`,
    oneLine(row.model, 32),
    `${received}→${sent} tokens`,
    `${row.recalledTokens} recalled`,
    row.memoryState,
    row.continuityState,
    row.end,
  ];
  return cells.map((cell) => oneLine(cell, 64)).join('  ');
}
