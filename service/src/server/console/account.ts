import { Buffer } from 'node:buffer';
import {
  asList,
  asRecord,
  type Fields,
  parseJson,
} from '../../../../src/core/bytes/json-fields.ts';
import { isoDay } from '../../../../src/core/memory/times.ts';
import type { Infer } from '../../../../src/core/memory-api/shape.ts';
import {
  ACCOUNT_SETTINGS,
  camelOf,
  settingsUpdate,
  settingsWire,
  type StoredSettings,
  withUpdate,
} from '../../core/account-settings.ts';
import { USAGE_COUNTS } from '../../core/receipt-rows.ts';
import { USAGE_GROUPS, type UsageGroup, type UsageSum } from '../../ports/receipt-store.ts';
import { readValue } from '../call.ts';
import { invalid } from '../fault.ts';
import {
  getReceipt,
  listReceiptHeads,
  listReceipts,
  queryFields,
  usageQuery,
} from '../operations/receipts.ts';
import { asKey } from './memory.ts';
import {
  apply,
  type Column,
  command,
  type ConsoleCall,
  type ConsoleOperation,
  type ConsoleReply,
  DAY,
  type Given,
  limitOption,
  type ListAll,
  listReply,
  option,
  type OptionRow,
  reads,
  type Shown,
  storeOf,
  timeOptions,
  wholeNumber,
  writes,
} from './operation.ts';

/** Operations on the settings of a tenant, on its usage and on its receipts. */

const MEMBERS = { day: 'day', key: 'api_key_id', provider: 'provider_id', model: 'model' } as const;

export const accountOperations: readonly ConsoleOperation[] = [
  reads(
    { name: 'getSettings', route: 'GET settings', role: 'viewer', ofTenant: true },
    async (call) => ({ status: 200, body: settingsWire(await storeOf(call).getSettings()) }),
    [
      command('settings show', 'Print the account defaults', {
        examples: ['settings show --json'],
        shows: settingsShown,
      }),
    ],
  ),
  writes(
    { name: 'updateSettings', route: 'PATCH settings', role: 'admin', ofTenant: true },
    settingsUpdate,
    updateSettings,
    [
      command('settings set', 'Change account defaults; defaults that you do not name stay', {
        options: Object.entries(ACCOUNT_SETTINGS).map(([name, row]) =>
          option(row.flags, row.about, name, readingOf(row.otherwise)),
        ),
        examples: ['settings set --input-budget 16000 --elision off'],
        nothing: [
          'No setting is given.',
          'For example: svc-service settings set --input-budget 16000',
        ],
        isVersioned: true,
        shows: settingsShown,
      }),
    ],
  ),
  reads({ name: 'getUsage', route: 'GET usage', role: 'viewer', ofTenant: true }, getUsage, [
    command('usage', 'Sum requests and tokens by day, key, provider or model', {
      options: [
        option('--by <list>', 'some of day,key,provider,model', 'group_by', { shown: 'day' }),
        option('--from <day>', 'first day, UTC (30 days ago)', 'from', { as: DAY }),
        option('--to <day>', 'last day, UTC (today)', 'to', { as: DAY }),
        option('--key <id>', 'only this key', 'api_key_id'),
        limitOption('how many rows', 100),
      ],
      examples: ['usage --by day,model --from 2026-11-01'],
      list: {
        columns: [
          ...Object.values(MEMBERS).map((member) => groupColumn(member)),
          ...['requests', 'failed'].map((member) => sumColumn(member, member)),
          sumColumn('original_input_tokens', 'in'),
          sumColumn('forwarded_input_tokens', 'forwarded'),
          sumColumn('output_tokens', 'out'),
          sumColumn('spent_tokens', 'spent'),
        ],
        left: 4,
        hasMore: 'There are more rows: name fewer days, or use --json.',
        complete: withNames,
      },
    }),
  ]),
];

function groupColumn(member: string): Column {
  return (sum, { line }) => {
    if (!(member in sum)) return undefined;
    return line(sum[NAME_OF[member] ?? ''] ?? sum[member], 40) || '-';
  };
}

function sumColumn(member: string, words: string): Column {
  return (sum, { line }) => `${line(sum[member])} ${words}`;
}

/** Returns how an option's text is read, by the type of its default. A word stays unchanged: the service checks it. */
function readingOf(otherwise: string | number | boolean): Pick<OptionRow, 'as'> {
  if (typeof otherwise === 'number') {
    return { as: wholeNumber(7, 'See: svc-service settings set --help') };
  }
  if (typeof otherwise === 'string') return {};
  const expected = 'expected on or off.';
  return { as: { read: (state) => SWITCHED.get(state), expected, hint: 'For example: off' } };
}

const SWITCHED: ReadonlyMap<unknown, boolean> = new Map([
  ['on', true],
  ['off', false],
]);

function settingsShown({ version: _version, ...settings }: Fields): Shown {
  return { lines: Object.entries(settings).map(([name, value]) => `${name}  ${String(value)}`) };
}

/** The members with ids, each with the member that has the name to show. */
const NAME_OF: Readonly<Record<string, string>> = {
  api_key_id: 'api_key_name',
  provider_id: 'provider_name',
};

/** Adds the names of keys and providers to the rows, also of revoked keys. */
async function withNames(
  sums: readonly Fields[],
  { group_by: by }: Given,
  listAll: ListAll,
): Promise<readonly Fields[]> {
  const groups = String(by).split(',');
  const keys = groups.includes('key') ? await listAll('keys', { revoked: 'true' }) : [];
  const providers = groups.includes('provider') ? await listAll('providers') : [];
  const names = new Map([
    ...keys.map(({ key_id: id, name }) => [id, name] as const),
    ...providers.map(({ provider_id: id, name }) => [id, name] as const),
  ]);
  return sums.map((sum) => {
    const found = Object.entries(NAME_OF).map(([id, name]) => [name, names.get(sum[id])]);
    return { ...sum, ...Object.fromEntries(found.filter(([, name]) => name !== undefined)) };
  });
}

/** Changes settings. If-Match states the version that the caller read, so that a newer change is not overwritten. */
async function updateSettings(
  call: ConsoleCall,
  change: Infer<typeof settingsUpdate>,
): Promise<ConsoleReply> {
  const { ifVersion } = call;
  if (ifVersion === undefined) {
    throw invalid('Send If-Match with the version of the settings that you read.', 'If-Match');
  }
  const store = storeOf(call);
  const settings = withUpdate(await store.getSettings(), change);
  await apply(
    call,
    store,
    { what: 'settings.put', settings, ifVersion },
    { kind: 'settings.updated', id: call.tenantId, what: 'setting', details: change },
  );
  const after: StoredSettings = { ...settings, version: ifVersion + 1 };
  return { status: 200, body: settingsWire(after) };
}

/** Rows of a page, if the call names no limit. */
const PAGE = 100;
const DAY_MS = 86_400_000;
const MONTH_DAYS = 30;

/** Returns the usage, by default of the last 30 days, one row for each day (UTC). */
async function getUsage(call: ConsoleCall): Promise<ConsoleReply> {
  const asked = readValue(queryFields(call.query), usageQuery);
  const groups = groupsOf(asked.group_by ?? 'day');
  const limit = (asked.limit ?? PAGE) + 1;
  const after = asked.after === undefined ? undefined : cursorOf(asked.after, groups);
  const sums = await storeOf(call).listUsage({
    from: asked.from ?? isoDay(call.now - (MONTH_DAYS - 1) * DAY_MS),
    to: asked.to ?? isoDay(call.now),
    groups,
    limit,
    after,
    keyId: asked.api_key_id,
  });
  const wireOf = (sum: UsageSum): object => sumWire(sum, groups);
  return listReply(sums, { limit, after: undefined }, { idOf, wireOf });
}

function idOf({ values }: UsageSum): string {
  return Buffer.from(JSON.stringify(values), 'utf8').toString('base64url');
}

function groupsOf(text: string): readonly UsageGroup[] {
  const asked = new Set(text.split(','));
  return USAGE_GROUPS.filter((group) => asked.has(group));
}

function cursorOf(text: string, groups: readonly UsageGroup[]): readonly string[] {
  const values = asList(parseJson(Buffer.from(text, 'base64url').toString('utf8')));
  const texts = values.filter((value) => typeof value === 'string');
  if (values.length === groups.length && texts.length === values.length) return texts;
  throw invalid('after is not a valid cursor.', 'after');
}

function sumWire({ values, ...sum }: UsageSum, groups: readonly UsageGroup[]): object {
  const counts = new Map(Object.entries(sum));
  return Object.fromEntries([
    ...groups.map((group, at) => [MEMBERS[group], values[at]]),
    ...USAGE_COUNTS.map((name) => [name, counts.get(camelOf(name))]),
  ]);
}

/** Deadline of a call for receipts, in milliseconds. */
const ASK_MS = 10_000;

/** Operations on the receipts of a tenant, which its keys with the scope `receipt:read` can read too. */
export const requestOperations: readonly ConsoleOperation[] = [
  reads(
    { name: 'listRequests', route: 'GET requests', role: 'viewer', ofTenant: true },
    asKey(listReceipts, ASK_MS),
    [
      command('receipts list', 'List receipts, newest first', {
        options: [
          ...timeOptions('from', 'to'),
          option('--status <status>', 'such as completed, rejected, unknown', 'status'),
          option('--model <name>', 'the requested model', 'model'),
          option('--key <id>', 'the id of a key', 'api_key_id'),
          option('--provider <id>', 'prov_…', 'provider_id'),
          limitOption('how many', 20),
        ],
        examples: [
          'receipts list --limit 50',
          'receipts list --status upstream_error --from 2026-11-20',
        ],
        list: {
          columns: [
            'receipt_id',
            ({ created_at: at }, { time }) => time(at),
            ({ status, http_status: http }, { line }) => line([status, http]),
            ({ model_requested: model }, { line }) => line(model) || '-',
            ({ forwarded_input_tokens: tokens }, { line }) => `${line(tokens)} in`,
            ({ output_tokens: tokens }, { line }) => `${line(tokens) || '?'} out`,
            ({ latency_ms: ms }, { line }) => `${line(asRecord(ms)['total'])} ms`,
          ],
          left: 4,
        },
      }),
    ],
  ),
  reads(
    { name: 'getRequest', route: 'GET requests/*', role: 'viewer' },
    asKey(getReceipt, ASK_MS),
    [
      command('receipts get', 'Print one receipt as JSON', {
        argument: {
          flags: '<id>',
          about: 'rcpt_…, from the header x-svc-receipt-id',
          pattern: /^rcpt_[0-9a-z]{26}$/,
          problem: [
            'This is not the id of a receipt.',
            'The id is in the header x-svc-receipt-id of the answer, and in the list.',
          ],
        },
        examples: ['receipts get rcpt_06e8z6k2y8r7v0b4c9d1f5g3hj'],
      }),
    ],
  ),
  reads(
    { name: 'listRequestHeads', route: 'GET requests/heads', role: 'viewer', ofTenant: true },
    asKey(listReceiptHeads, ASK_MS),
    [
      command('receipts export', 'Write receipts, heads and public keys to a new folder', {
        argument: { flags: '<folder>', about: 'the target folder' },
        options: timeOptions('from', 'to'),
        examples: ['receipts export ./november --from 2026-11-01'],
      }),
    ],
  ),
];
