import { Buffer } from 'node:buffer';
import { asList, asRecord, parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { closedPurgeRequest } from '../../../../src/core/memory-api/contract.ts';
import type { Call, Operation } from '../call.ts';
import { listItems, listPurges, listSources } from '../operations/reading.ts';
import { createPurge, deleteItem, getPurge } from '../operations/purges.ts';
import {
  command,
  type ConsoleCall,
  type ConsoleOperation,
  type Given,
  limitOption,
  option,
  type OptionRow,
  type Problem,
  reads,
  storeOf,
  timeOptions,
  WHEN,
  writes,
} from './operation.ts';

/** Operations on the memory of a tenant: those of a key that may use every space of the tenant. */

/** Deadline of a call, in milliseconds. It does not interrupt the erasing of a purge. */
const CALL_MS = 60_000;

const SESSION: OptionRow = option('--session <id>', 'only this session', 'session_id');
const SOURCE: OptionRow = option(
  '--source <id>',
  'only this source, from svc-service sources',
  'source_id',
);

export const memoryOperations: readonly ConsoleOperation[] = [
  reads(
    { name: 'listMemorySources', route: 'GET memory/sources', role: 'viewer', ofTenant: true },
    asKey(listSources),
    [
      command('sources', 'List the origins of the records of a space', {
        options: [spaceOption('the space'), limitOption('how many', 20)],
        examples: ['sources --space project/api-0123456789'],
        list: {
          columns: [
            'source_id',
            ({ session_id: session, kind }, { line }) => line(session, 40) || line(kind),
            ({ client }, { line }) => line(client, 24) || '-',
            ({ records }, { line }) => `${line(records)} records`,
            ({ last_seen: at }, { time }) => `last ${time(at)}`,
          ],
        },
      }),
    ],
  ),
  reads(
    { name: 'listMemoryItems', route: 'GET memory/items', role: 'admin', ofTenant: true },
    asKey(listItems),
    [
      command('items list', 'List records, newest first, or best first with --search', {
        options: [
          option('--space <name>', 'the space (default: all)', 'space'),
          option('--search <words>', 'words to search for', 'q'),
          option('--role <role>', 'user, assistant or tool', 'role'),
          SESSION,
          SOURCE,
          ...timeOptions('since', 'until'),
          limitOption('how many', 20),
        ],
        examples: [
          'items list --space project/api-0123456789 --limit 50',
          "items list --search 'undici version' --json",
        ],
        list: {
          empty: 'No record matches.',
          hasMore: 'There are more records: --limit allows up to 100.',
          columns: [
            'item_id',
            ({ created_at: at }, { time }) => time(at),
            ({ provenance, kind }, { line }) =>
              line(asRecord(asList(provenance)[0])['role']) || line(kind),
            'text:80',
          ],
        },
      }),
    ],
  ),
  reads(
    { name: 'deleteMemoryItem', route: 'DELETE memory/items/*', role: 'admin', ofTenant: true },
    asKey(deleteItem),
    [
      command('items delete', 'Delete a record permanently, with a signed receipt', {
        argument: { flags: '<id>', about: 'from the list' },
        options: [spaceOption('the space of the record')],
        examples: ['items delete it_12 --space default'],
        shows: ({ purge_id: id }, { line }) => ({
          note: `The record is deleted. The receipt: ${line(id)}`,
        }),
      }),
    ],
  ),
  writes(
    { name: 'createMemoryPurge', route: 'POST memory/purges', role: 'admin', ofTenant: true },
    closedPurgeRequest,
    asKey(createPurge),
    [
      command('purge', 'Purge records of a space; without --yes it only counts them', {
        options: [
          spaceOption('the space'),
          option('--all', 'all of its records', 'all'),
          SESSION,
          SOURCE,
          option('--before <when>', 'records from before this day or time', 'before', { as: WHEN }),
          option('--digest <digest...>', 'records with these digests', 'digests'),
          option('--yes', 'confirm; a purge cannot be undone', 'yes'),
        ],
        examples: ['purge --space project/api-0123456789 --before 2026-01-01 --yes'],
        check: checkScope,
        ask: ({ space, yes = false, ...scope }) => ({
          space,
          confirm: space,
          scope,
          dry_run: yes !== true,
        }),
        shows: ({ counts, purge_id: id }, { count, line }, { sent }) => {
          const found = count(asRecord(counts)['records'], 'record');
          return {
            note:
              sent['dry_run'] === true
                ? `${found} would be purged. A purge cannot be undone. To purge, add --yes.`
                : `${found} purged. The receipt: ${line(id)}`,
          };
        },
      }),
    ],
  ),
  reads(
    { name: 'listMemoryPurges', route: 'GET memory/purges', role: 'viewer', ofTenant: true },
    asKey(listPurges),
    [
      command('purges', 'List receipts of purges, newest first', {
        options: [limitOption('how many', 20)],
        examples: [
          'purges',
          'purges --json > purges.json      # for: svc-service receipts verify purges.json',
        ],
        list: {
          empty: 'Nothing was purged yet.',
          columns: [
            'purge_id',
            'state',
            'space:40',
            ({ counts }, { count }) => count(asRecord(counts)['records'], 'record'),
          ],
        },
      }),
    ],
  ),
  // Has no command: the list shows the same.
  reads(
    { name: 'getMemoryPurge', route: 'GET memory/purges/*', role: 'viewer', ofTenant: true },
    asKey(getPurge),
    [],
  ),
];

function spaceOption(about: string): OptionRow {
  return { flags: '--space <name>', about, to: 'space', isRequired: true };
}

function checkScope({ all, session, source, before, digest }: Given): Problem | undefined {
  const scopes = [all, session, source, before, digest].filter((scope) => scope !== undefined);
  if (scopes.length === 1) return undefined;
  const hint = 'Give one of --all, --session ID, --source ID, --before DAY, --digest DIGEST.';
  return ['Say what to purge with exactly one option.', hint];
}

/** Turns an operation for keys into one of the console. `ms`: the deadline of a call. */
export function asKey(operation: Operation, ms = CALL_MS): ConsoleOperation['run'] {
  return async (call) => {
    const parts = { ...call.parts, settings: { requestsPerMinute: null } };
    const { body } = await operation(keyCall(call, ms), parts);
    return { status: 200, body: parseJson(body) };
  };
}

/** Makes the call of a key that has all rights in the actor's tenant. */
function keyCall(call: ConsoleCall, ms: number): Call {
  const { actor, tenantId, query, parameter, body, now, method, path } = call;
  return {
    requestId: '',
    key: {
      tenant: tenantId,
      keyId: actor.id,
      name: actor.type,
      hash: '',
      scopes: ['read', 'write', 'receipt:read'],
      createdAt: 0,
    },
    actor: { type: actor.type, id: actor.id, ip_hash: actor.ipHash },
    store: storeOf(call),
    head: { method, path, query, headers: [] },
    parameter,
    body: Buffer.from(JSON.stringify(body ?? {}), 'utf8'),
    signal: AbortSignal.timeout(ms),
    deadlineAt: now + ms,
    now,
  };
}
