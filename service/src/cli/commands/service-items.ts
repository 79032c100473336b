import { asList, asRecord } from '../../../../src/core/bytes/json-fields.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { count, limitOf, timeText } from '../../../../src/cli/listing.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { type ConsoleOptions, withConsole } from './console-access.ts';
import { textOf, timeOf } from './console-fields.ts';
import { timeIn } from './service-receipts.ts';

/** `svc-service items` and `purges`: the records of a tenant's memory, and the receipts of what was purged. */

export interface ItemsOptions extends ConsoleOptions {
  readonly space?: string;
  readonly search?: string;
  readonly role?: string;
  readonly session?: string;
  readonly source?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit?: string;
}

export async function listItems(options: ItemsOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const page = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'memory/items', query: queryOf(options) }),
  );
  const items = asList(page['data']).map(asRecord);
  if (options.json === true) {
    terminal.json(items);
    return;
  }
  if (items.length === 0) terminal.note('No record matches.');
  const rows = items.map((item) => {
    const [origin] = asList(item['provenance']).map(asRecord);
    return [
      textOf(item['item_id']),
      timeText(timeOf(item['created_at']) ?? 0),
      textOf(origin?.['role']) || textOf(item['kind']),
      oneLine(textOf(item['text']), 80),
    ];
  });
  for (const line of table(rows, { columns: terminal.columns(160), left: [0, 1, 2, 3] })) {
    terminal.out(line);
  }
  if (page['has_more'] === true) terminal.note('There are more records: --limit allows up to 100.');
}

function queryOf(options: ItemsOptions): Readonly<Record<string, string>> {
  const { space, search, role, session, source, from, to } = options;
  return {
    limit: String(limitOf(options.limit, { fallback: 20, max: 100 })),
    ...(space === undefined ? {} : { space }),
    ...(search === undefined ? {} : { q: search }),
    ...(role === undefined ? {} : { role }),
    ...(session === undefined ? {} : { session_id: session }),
    ...(source === undefined ? {} : { source_id: source }),
    ...(from === undefined ? {} : { since: timeIn(from, '--from <when>') }),
    ...(to === undefined ? {} : { until: timeIn(to, '--to <when>') }),
  };
}

export async function deleteItem(
  id: string,
  options: ConsoleOptions & { readonly space: string },
  context: CommandContext,
): Promise<void> {
  const { space } = options;
  const receipt = await withConsole(options, context, (console) =>
    console.call({
      method: 'DELETE',
      path: `memory/items/${encodeURIComponent(id)}`,
      query: { space },
    }),
  );
  if (options.json === true) context.terminal.json(receipt);
  context.terminal.note(`The record is deleted. The receipt: ${textOf(receipt['purge_id'])}`);
}

export async function listPurges(
  options: ConsoleOptions & { readonly limit?: string },
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  const query = { limit: String(limitOf(options.limit, { fallback: 20, max: 100 })) };
  const page = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'memory/purges', query }),
  );
  const receipts = asList(page['data']).map(asRecord);
  if (options.json === true) {
    terminal.json(receipts);
    return;
  }
  if (receipts.length === 0) terminal.note('Nothing was purged yet.');
  const rows = receipts.map((receipt) => {
    const { records } = asRecord(receipt['counts']);
    return [
      textOf(receipt['purge_id']),
      textOf(receipt['state']),
      oneLine(textOf(receipt['space']), 40),
      count(typeof records === 'number' ? records : 0, 'record'),
    ];
  });
  for (const line of table(rows, { columns: terminal.columns(160), left: [0, 1, 2, 3] })) {
    terminal.out(line);
  }
}
