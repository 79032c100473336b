import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { callService, itemOf, keyIdOf } from '../support/memory-service.ts';
import {
  DIALECT,
  openTwoTenants,
  SPACES,
  type Step,
  take,
  type Tenant,
  TENANTS,
  type TwoTenants,
  viewOf,
} from '../support/tenant-steps.ts';

/**
 * The law of two tenants: whoever else uses a service, and says the same words in the same spaces with
 * the same keys of idempotency, a tenant sees what it would see if it were alone: in what its provider
 * gets, in recall, proof, records, sources, purges, receipts, usage, audit, providers, keys and settings.
 */

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    tenant: fc.constantFrom(...TENANTS),
    space: fc.constantFrom(...SPACES),
    what: fc.constantFrom<Step['what']>('tell', 'ask', 'again', 'capture', 'purge', 'settings'),
    about: fc.nat(1),
  }),
  { minLength: 4, maxLength: 12 },
);

interface Given {
  readonly pepper: Uint8Array;
  readonly open: () => Promise<ServiceStore | undefined>;
}

/** What each tenant sees in the end. */
async function run(
  { pepper, open }: Given,
  given: readonly Step[],
): Promise<Readonly<Record<string, unknown>>> {
  const store = await open();
  const stage = await openTwoTenants({ pepper, ...(store === undefined ? {} : { store }) });
  for (const step of given) {
    // oxlint-disable-next-line no-await-in-loop
    await take(stage, step);
    // oxlint-disable-next-line no-await-in-loop
    await stage.service.flush();
  }
  const views: Record<string, unknown> = {};
  // oxlint-disable-next-line no-await-in-loop
  for (const tenant of TENANTS) views[tenant] = await viewOf(stage, tenant);
  await stage.service.stop();
  return views;
}

function both(what: Step['what'], space: Step['space'] = 'shop'): readonly Step[] {
  return TENANTS.map((tenant) => ({ tenant, space, what, about: 0 }));
}

/** One asks before and after the other purges, with everything else in between. */
const PURGED: Step[] = [
  ...both('tell'),
  ...both('capture'),
  ...both('ask'),
  ...both('settings').slice(0, 1),
  ...both('purge').slice(0, 1),
  ...both('ask'),
  ...both('again'),
  ...both('capture'),
];

function law(open: Given['open'], numRuns: number): void {
  test('each tenant sees what it would see if it were alone', { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (given) => {
        const pepper = randomBytes(32);
        const together = await run({ pepper, open }, given);
        for (const tenant of TENANTS) {
          const own = given.filter((step) => step.tenant === tenant);
          // oxlint-disable-next-line no-await-in-loop
          const alone = await run({ pepper, open }, own);
          expect(together[tenant]).toEqual(alone[tenant]);
        }
      }),
      { numRuns, examples: [[PURGED]], endOnFailure: true },
    );
  });
}

describe('on SQLite', () => law(async () => undefined, 4));

describe.skipIf(missingPostgres() !== undefined)('on PostgreSQL', () => {
  const stores = postgresStores();
  law(() => stores.open(), 2);
});

test('ids, references, fingerprints and keys of idempotency of one tenant open nothing for the other', async () => {
  const stage = await openTwoTenants();
  for (const step of [...both('tell'), ...both('capture'), ...both('ask')]) {
    // oxlint-disable-next-line no-await-in-loop
    await take(stage, step);
  }
  const { keys, tokens, service } = stage;
  const own = await namesOf(stage, 'acme');
  const before = await viewOf(stage, 'acme');
  const calls: readonly (readonly [string, string, object?])[] = [
    ['GET', `requests/${own.receipt}`],
    ['GET', `console/requests/${own.receipt}`],
    ['GET', `memory/objects/${own.secretRef}`],
    ['DELETE', `memory/items/${own.item}?space=global`],
    ['DELETE', `console/memory/items/${own.item}?space=global`],
    ['GET', `memory/purges/${own.purge}`],
    ['GET', `console/memory/purges/${own.purge}`],
    ['GET', `console/providers/${own.provider}`],
    ['PATCH', `console/providers/${own.provider}`, { version: 1, enabled: false }],
    ['DELETE', `console/providers/${own.provider}`],
    ['POST', `console/providers/${own.provider}/models`, {}],
    ['POST', `console/keys/${own.key}/rotate`, { grace_seconds: 0 }],
    ['DELETE', `console/keys/${own.key}`],
    ['DELETE', `console/admins/${own.admin}`],
  ];
  for (const [method, path, body] of calls) {
    const key = path.startsWith('console/') ? tokens.default : keys.default;
    const more = body === undefined ? {} : { body };
    // oxlint-disable-next-line no-await-in-loop
    const { status } = await callService(service.url, `/v1/svc/${path}`, { method, key, ...more });
    expect([method, path, status]).toEqual([method, path, 404]);
  }
  const filters = [`api_key_id=${own.key}`, `provider_id=${own.provider}`];
  for (const filter of filters) {
    // oxlint-disable-next-line no-await-in-loop
    const { json } = await callService(service.url, `/v1/svc/requests?${filter}`, {
      key: keys.default,
    });
    expect(json.data).toEqual([]);
  }
  const { json: retrieved } = await callService(service.url, '/v1/svc/memory/retrieve', {
    key: keys.default,
    body: { space: 'global', refs: [own.secretRef] },
  });
  expect(retrieved.objects ?? []).toEqual([]);
  expect(await viewOf(stage, 'acme')).toEqual(before);
  // Who may look at two tenants sees no sign that they have one credential.
  const [ours, theirs] = await Promise.all(TENANTS.map((tenant) => fingerprintOf(stage, tenant)));
  expect(ours).not.toBe(theirs);
});

/** Ids of what the tenant has, among it a record that it alone keeps, and a purge of its own. */
async function namesOf(stage: TwoTenants, tenant: Tenant) {
  const { service, keys, tokens } = stage;
  const key = keys[tenant];
  const said = itemOf('Only acme knows that the vault door squeaks.');
  const body = { space: 'global', if_generation: 'new', items: [said] };
  await callService(service.url, '/v1/svc/memory/capture', { key, body });
  const scope = { digests: [`sha256:${'A'.repeat(43)}`] };
  const purge = await callService(service.url, '/v1/svc/memory/purges', {
    key,
    body: { space: 'shop', confirm: 'shop', scope },
  });
  await service.receipts.flush();
  const admin = tokens[tenant];
  const get = async (path: string, by = key) =>
    (await callService(service.url, `/v1/svc/${path}`, { key: by })).json;
  const items = await get('memory/items?space=global');
  const receipts = await get('requests');
  const providers = await get('console/providers', admin);
  const [item] = items.data;
  return {
    receipt: String(receipts.data[0].receipt_id),
    item: String(item.item_id),
    secretRef: String(item.provenance[0].ref),
    purge: String(purge.json.purge_id),
    provider: String(providers.data[0].provider_id),
    key: keyIdOf(key),
    admin: keyIdOf(admin),
  };
}

/** Of one credential that both have. */
async function fingerprintOf(stage: TwoTenants, tenant: Tenant): Promise<string> {
  const more = { name: 'same', credential: 'sk-the-same-secret', allowed_models: ['same'] };
  const id = await stage.addProvider(DIALECT, { ...more, default_model: 'same' }, tenant);
  const { json } = await stage.ask(`GET providers/${id}`, undefined, { tenant });
  const path = `/v1/svc/console/providers/${id}`;
  await callService(stage.service.url, path, { key: stage.tokens[tenant], method: 'DELETE' });
  return String(json.credential.fingerprint);
}
