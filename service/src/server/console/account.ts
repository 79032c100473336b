import { Buffer } from 'node:buffer';
import { parseJson } from '../../../../src/core/bytes/json-fields.ts';
import {
  settingsUpdate,
  settingsWire,
  type StoredSettings,
  withUpdate,
} from '../../core/account-settings.ts';
import { queryFields, usageQuery } from '../../core/receipt-query.ts';
import { USAGE_GROUPS, type UsageGroup, type UsageSum } from '../../ports/receipt-store.ts';
import { readValue } from '../call.ts';
import { ServiceFault } from '../fault.ts';
import {
  type ConsoleCall,
  type ConsoleReply,
  findTenant,
  listReply,
  mustBeDone,
  noteOf,
  storeOf,
} from './console-call.ts';

/** The settings of a tenant, and what its requests came to. */

export async function getSettings(call: ConsoleCall): Promise<ConsoleReply> {
  await findTenant(call);
  return { status: 200, body: settingsWire(await storeOf(call).getSettings()) };
}

/**
 * The caller sends the version that it read, so that no caller overwrites another caller's change.
 */
export async function updateSettings(call: ConsoleCall): Promise<ConsoleReply> {
  const change = readValue(call.body, settingsUpdate);
  const { ifVersion } = call;
  if (ifVersion === undefined) {
    const message = 'Send If-Match with the version of the settings that you read.';
    throw new ServiceFault('INVALID_REQUEST', message, { param: 'If-Match' });
  }
  await findTenant(call);
  const store = storeOf(call);
  const before = await store.getSettings();
  const settings = withUpdate(before, change);
  const target = { type: 'settings', id: call.tenantId };
  const note = noteOf(call, 'settings.updated', { target, details: change });
  mustBeDone(await store.apply({ what: 'settings.put', settings, ifVersion }, note), 'setting');
  const after: StoredSettings = { ...settings, version: ifVersion + 1 };
  return { status: 200, body: settingsWire(after) };
}

const PAGE = 100;
const DAY_MS = 86_400_000;
const MONTH_DAYS = 30;

/** By day of UTC where nothing else is asked for, of the last 30 days. */
export async function getUsage(call: ConsoleCall): Promise<ConsoleReply> {
  const asked = readValue(queryFields(call.query), usageQuery);
  await findTenant(call);
  const groups = groupsOf(asked.group_by ?? 'day');
  const limit = (asked.limit ?? PAGE) + 1;
  const after = asked.after === undefined ? undefined : cursorOf(asked.after, groups);
  const keyId = asked.api_key_id;
  const sums = await storeOf(call).listUsage({
    from: asked.from ?? dayOf(call.now - (MONTH_DAYS - 1) * DAY_MS),
    to: asked.to ?? dayOf(call.now),
    groups,
    limit,
    ...(after === undefined ? {} : { after }),
    ...(keyId === undefined ? {} : { keyId }),
  });
  const wireOf = (sum: UsageSum): object => sumWire(sum, groups);
  return listReply(sums, { limit, after: undefined }, { idOf, wireOf });
}

const MEMBERS = { day: 'day', key: 'api_key_id', provider: 'provider_id', model: 'model' } as const;

/** The cursor behind a sum. */
function idOf({ values }: UsageSum): string {
  return Buffer.from(JSON.stringify(values), 'utf8').toString('base64url');
}

/** Each once. */
function groupsOf(text: string): readonly UsageGroup[] {
  const asked = new Set(text.split(','));
  return USAGE_GROUPS.filter((group) => asked.has(group));
}

function cursorOf(text: string, groups: readonly UsageGroup[]): readonly string[] {
  const values = parseJson(Buffer.from(text, 'base64url').toString('utf8'));
  const isCursor = Array.isArray(values) && values.length === groups.length;
  const texts = isCursor
    ? values.filter((value): value is string => typeof value === 'string')
    : [];
  if (texts.length === groups.length) return texts;
  throw new ServiceFault('INVALID_REQUEST', 'after is not a valid cursor.', { param: 'after' });
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 'YYYY-MM-DD'.length);
}

function sumWire({ values, ...sum }: UsageSum, groups: readonly UsageGroup[]): object {
  return {
    ...Object.fromEntries(groups.map((group, at) => [MEMBERS[group], values[at]])),
    requests: sum.requests,
    failed: sum.failed,
    original_input_tokens: sum.originalInputTokens,
    forwarded_input_tokens: sum.forwardedInputTokens,
    recalled_tokens: sum.recalledTokens,
    elided_tokens: sum.elidedTokens,
    input_tokens: sum.inputTokens,
    cache_read_tokens: sum.cacheReadTokens,
    output_tokens: sum.outputTokens,
    spent_tokens: sum.spentTokens,
  };
}
