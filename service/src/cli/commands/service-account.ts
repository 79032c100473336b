import { asList, asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { count, limitOf, timeText } from '../../../../src/cli/listing.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { type ConsoleOptions, listAll, withConsole } from './console-access.ts';
import { type ConsoleAccess, type Fields, textOf, timeOf } from './console-fields.ts';
import { timeIn } from './service-receipts.ts';

/** `svc-service settings`, `usage`, `sources` and `purge`: what belongs to one tenant. */

export interface SettingsOptions extends ConsoleOptions {
  readonly compressionMode?: string;
  readonly inputBudget?: string;
  readonly recalledTokens?: string;
  readonly elision?: string;
  readonly keepRounds?: string;
  readonly captureLimit?: string;
}

export async function showSettings(
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  const settings = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'settings' }),
  );
  printSettings(settings, options, context);
}

/** Changes the current version only, so a change by another admin in between is not overwritten. */
export async function setSettings(
  options: SettingsOptions,
  context: CommandContext,
): Promise<void> {
  const body = changesOf(options);
  if (Object.keys(body).length === 0) {
    const hint = 'For example: svc-service settings set --input-budget 16000';
    throw new CliError('No setting is given.', hint, 2);
  }
  const settings = await withConsole(options, context, async (console) => {
    const { version } = await console.call({ method: 'GET', path: 'settings' });
    const ifVersion = typeof version === 'number' ? version : 0;
    return console.call({ method: 'PATCH', path: 'settings', body, ifVersion });
  });
  printSettings(settings, options, context);
}

function changesOf(options: SettingsOptions): Fields {
  const { compressionMode, elision } = options;
  return {
    ...(compressionMode === undefined ? {} : { compression_mode: compressionMode }),
    ...numberOf('input_budget', options.inputBudget, '--input-budget'),
    ...numberOf('recalled_tokens_max', options.recalledTokens, '--recalled-tokens'),
    ...(elision === undefined ? {} : { elision_enabled: elision === 'on' }),
    ...numberOf('elision_keep_rounds', options.keepRounds, '--keep-rounds'),
    ...numberOf('elision_capture_limit', options.captureLimit, '--capture-limit'),
  };
}

function numberOf(name: string, text: string | undefined, flag: string): Fields {
  if (text === undefined) return {};
  if (/^\d{1,7}$/.test(text)) return { [name]: Number(text) };
  throw new CliError(
    `${flag}: expected a whole number.`,
    'See: svc-service settings set --help',
    2,
  );
}

function printSettings(settings: Fields, { json }: ConsoleOptions, context: CommandContext): void {
  if (json === true) {
    context.terminal.json(settings);
    return;
  }
  for (const [name, value] of Object.entries(settings)) {
    if (name !== 'version') context.terminal.out(`${name}  ${String(value)}`);
  }
}

export interface UsageOptions extends ConsoleOptions {
  readonly by?: string;
  readonly from?: string;
  readonly to?: string;
  readonly key?: string;
  readonly limit?: string;
}

const DAY_CHARS = 'YYYY-MM-DD'.length;

export async function showUsage(options: UsageOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const { by = 'day', from, to, key } = options;
  const limit = limitOf(options.limit, { fallback: 100, max: 100 });
  const query = {
    group_by: by,
    limit: String(limit),
    ...(from === undefined ? {} : { from: timeIn(from, '--from <when>').slice(0, DAY_CHARS) }),
    ...(to === undefined ? {} : { to: timeIn(to, '--to <when>').slice(0, DAY_CHARS) }),
    ...(key === undefined ? {} : { api_key_id: key }),
  };
  const { page, names } = await withConsole(options, context, async (console) => ({
    page: await console.call({ method: 'GET', path: 'usage', query }),
    names: await namesFor(by, console),
  }));
  const sums = asList(page['data'])
    .map(asRecord)
    .map((sum): Fields => ({ ...sum, ...namesIn(sum, names) }));
  if (options.json === true) {
    terminal.json(sums);
    return;
  }
  const rows = sums.map((sum) => [
    ...['day', 'api_key_id', 'provider_id', 'model']
      .filter((name) => name in sum)
      .map((name) => oneLine(textOf(sum[NAME_OF[name] ?? ''] ?? sum[name]), 40) || '-'),
    `${String(sum['requests'])} requests`,
    `${String(sum['failed'])} failed`,
    `${String(sum['original_input_tokens'])} in`,
    `${String(sum['forwarded_input_tokens'])} forwarded`,
    `${String(sum['output_tokens'])} out`,
    `${String(sum['spent_tokens'])} spent`,
  ]);
  const shape = { columns: terminal.columns(160), left: by.split(',').map((_, at) => at) };
  for (const line of table(rows, shape)) terminal.out(line);
  if (page['has_more'] === true)
    terminal.note('There are more rows: name fewer days, or use --json.');
}

/** Members with an id, and those beside them with its name. */
const NAME_OF: Readonly<Record<string, string>> = {
  api_key_id: 'api_key_name',
  provider_id: 'provider_name',
};

/** Names of keys, also of revoked ones, and of providers: by id, as far as the groups have them. */
async function namesFor(by: string, console: ConsoleAccess): Promise<ReadonlyMap<string, string>> {
  const groups = by.split(',');
  const keys = groups.includes('key') ? await listAll(console, 'keys', { revoked: 'true' }) : [];
  const providers = groups.includes('provider') ? await listAll(console, 'providers') : [];
  return new Map([
    ...keys.map((key) => [textOf(key['key_id']), textOf(key['name'])] as const),
    ...providers.map((one) => [textOf(one['provider_id']), textOf(one['name'])] as const),
  ]);
}

function namesIn(sum: Fields, names: ReadonlyMap<string, string>): Fields {
  const found = Object.entries(NAME_OF).map(([id, name]) => [name, names.get(textOf(sum[id]))]);
  return Object.fromEntries(found.filter(([, name]) => name !== undefined));
}

export interface SpaceOptions extends ConsoleOptions {
  readonly space: string;
  readonly limit?: string;
}

export async function listSources(options: SpaceOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const limit = limitOf(options.limit, { fallback: 20, max: 100 });
  const query = { space: options.space, limit: String(limit) };
  const page = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'memory/sources', query }),
  );
  const sources = asList(page['data']).map(asRecord);
  if (options.json === true) {
    terminal.json(sources);
    return;
  }
  const rows = sources.map((source) => [
    textOf(source['source_id']),
    oneLine(textOf(source['session_id']) || textOf(source['kind']), 40),
    oneLine(textOf(source['client']) || '-', 24),
    `${String(source['records'])} records`,
    `last ${timeText(timeOf(source['last_seen']) ?? 0)}`,
  ]);
  const shape = { columns: terminal.columns(160), left: [0, 1, 2, 3, 4] };
  for (const line of table(rows, shape)) terminal.out(line);
}

export interface PurgeOptions extends SpaceOptions {
  readonly all?: boolean;
  readonly session?: string;
  readonly source?: string;
  readonly before?: string;
  readonly digest?: readonly string[];
  readonly yes?: boolean;
}

/** Without `--yes` it only counts. */
export async function purgeMemory(options: PurgeOptions, context: CommandContext): Promise<void> {
  const { terminal } = context;
  const { space, yes = false } = options;
  const body = { space, confirm: space, scope: scopeOf(options), dry_run: !yes };
  const receipt = await withConsole(options, context, (console) =>
    console.call({ method: 'POST', path: 'memory/purges', body }),
  );
  if (options.json === true) terminal.json(receipt);
  const { records } = asRecord(receipt['counts']);
  const found = count(typeof records === 'number' ? records : 0, 'record');
  terminal.note(
    yes
      ? `${found} purged. The receipt: ${textOf(receipt['purge_id'])}`
      : `${found} would be purged. A purge cannot be undone. To purge, add --yes.`,
  );
}

function scopeOf({ all, session, source, before, digest }: PurgeOptions): object {
  const scopes = [
    ...(all === true ? [{ all: true }] : []),
    ...(session === undefined ? [] : [{ session_id: session }]),
    ...(source === undefined ? [] : [{ source_id: source }]),
    ...(before === undefined ? [] : [{ before: timeIn(before, '--before <when>') }]),
    ...(digest === undefined ? [] : [{ digests: digest }]),
  ];
  const [scope] = scopes;
  if (scope !== undefined && scopes.length === 1) return scope;
  const hint = 'Give one of --all, --session ID, --source ID, --before DAY, --digest DIGEST.';
  throw new CliError('Say what to purge with exactly one option.', hint, 2);
}
