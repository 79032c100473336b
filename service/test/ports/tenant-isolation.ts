import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ServiceStore, TenantStore } from '../../src/ports/service-store.ts';
import {
  addKeyTo,
  addMasterKey,
  addTenant,
  noteOfTest,
  providerOf,
  putProvider,
  removeProvider,
  revokeKeyOf,
} from '../support/service-control.ts';
import { newReceiptId } from '../../src/core/ids.ts';
import { RECEIVED_AT, rowOfReceipt } from '../support/receipt-facts.ts';
import { itemsOf, newPurgeId, objectOf, questionTo } from '../support/service-objects.ts';

/**
 * The law of tenants: a tenant sees what it would see if it were alone. Two tenants say the same
 * words in the same spaces, in any order; then each is compared with a store that only it used.
 */

const RECEIPT_IDS = [0, 1].map((at) => newReceiptId(RECEIVED_AT + at, () => new Uint8Array(10)));
const TENANTS = ['acme', 'acme-2'] as const;
const SPACES = ['default', 'project/shop', 'global'];
const WORDS = [
  'The deploy code word is marmalade.',
  'The staging port is 6543.',
  'Tea is served at noon in the blue room.',
  'The parser writes nodes in order.',
];

type Step =
  | { readonly what: 'capture'; readonly space: string; readonly text: string }
  | { readonly what: 'purge'; readonly space: string; readonly text: string | undefined }
  | { readonly what: 'key' | 'revoke'; readonly name: string }
  | { readonly what: 'provider' | 'remove'; readonly name: string }
  | { readonly what: 'receipt' | 'settings'; readonly name: string }
  | { readonly what: 'answer'; readonly name: string; readonly text: string };

type TenantStep = Step & { readonly tenant: (typeof TENANTS)[number] };

const space = fc.constantFrom(...SPACES);
const text = fc.constantFrom(...WORDS);
const name = fc.constantFrom('one', 'two');
const tenant = fc.constantFrom(...TENANTS);
const step: fc.Arbitrary<TenantStep> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ tenant, what: fc.constant('capture' as const), space, text }),
  },
  fc.record({
    tenant,
    what: fc.constant('purge' as const),
    space,
    text: fc.option(text, { nil: undefined }),
  }),
  fc.record({ tenant, what: fc.constantFrom('key' as const, 'revoke' as const), name }),
  fc.record({ tenant, what: fc.constantFrom('provider' as const, 'remove' as const), name }),
  fc.record({ tenant, what: fc.constantFrom('receipt' as const, 'settings' as const), name }),
  fc.record({ tenant, what: fc.constant('answer' as const), name, text }),
);

export function isolationLaw(open: () => ServiceStore | Promise<ServiceStore>): void {
  test('two tenants that say the same words: each sees what it would see alone', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        const together = await viewsAfter(open, steps);
        for (const one of TENANTS) {
          const own = steps.filter((given) => given.tenant === one);
          // oxlint-disable-next-line no-await-in-loop
          const alone = await viewsAfter(open, own);
          expect(together[one]).toEqual(alone[one]);
        }
      }),
      { numRuns: 8 },
    );
  }, 600_000);

  test('a purge, a key and a space of another tenant cannot be reached by their names', async () => {
    const store = await open();
    await addTenant(store, 'acme');
    const [own, other] = [store.of('acme'), store.of('other')];
    await keep(own, 'default', 'a fact');
    await addKeyTo(own, { keyId: 'k', name: 'k', hash: 'h', scopes: [], createdAt: 1 });
    const order = { space: 'default', scope: { all: true }, isDryRun: false } as const;
    const purgeId = newPurgeId();
    await own.beginPurge({ ...order, purgeId, requestedBy: 'k', now: 5 });
    expect(await other.findPurge(purgeId, patience())).toBe(undefined);
    expect(await other.continuePurge(purgeId, 6)).toBe(true);
    expect(await own.findPurge(purgeId, patience())).toMatchObject({ state: 'tombstoned' });
    expect(await store.unfinishedPurges()).toEqual([{ tenant: 'acme', purgeId }]);
    expect(await revokeKeyOf(other, 'k')).toBe('missing');
    const rotation = { hash: 'x', at: 6, graceMs: 0 };
    const rotate = { what: 'key.rotate', keyId: 'k', rotation } as const;
    expect(await other.apply(rotate, noteOfTest('key.rotated'))).toBe('missing');
    expect(await other.getKey('k')).toBe(undefined);
    await addMasterKey(store);
    expect(await putProvider(own, providerOf())).toBe('done');
    expect(await other.listProviders()).toEqual([]);
    expect(await removeProvider(other, 'prov_a')).toBe('missing');
    expect(await other.findSecret('sec_a')).toBe(undefined);
    expect(await own.findSecret('sec_a')).toMatchObject({ tenant: 'acme', owner: 'prov_a' });
    expect(await other.listAudit({ limit: 9, after: undefined })).toEqual([]);
    await other.noteKeyUse('k', 6);
    expect((await own.listKeys())[0]).not.toHaveProperty('usedAt');
    for (const wrong of ['', 'Acme', 'acme:default', 'a*', '../x']) {
      expect(() => store.of(wrong)).toThrow('not the id of a tenant');
    }
    await store.close();
  });
}

const patience = (): AbortSignal => AbortSignal.timeout(120_000);

type Views = Readonly<Record<string, unknown>>;

async function viewsAfter(
  open: () => ServiceStore | Promise<ServiceStore>,
  steps: readonly TenantStep[],
): Promise<Views> {
  const store = await open();
  for (const one of TENANTS) {
    // oxlint-disable-next-line no-await-in-loop
    await addTenant(store, one);
  }
  await addMasterKey(store);
  try {
    for (const [at, given] of steps.entries()) {
      // oxlint-disable-next-line no-await-in-loop
      await take(store, given, steps.slice(0, at));
    }
    const views = await Promise.all(TENANTS.map((one) => viewOf(store.of(one))));
    return Object.fromEntries(TENANTS.map((one, at) => [one, views[at]]));
  } finally {
    await store.close();
  }
}

async function take(whole: ServiceStore, given: TenantStep, before: readonly TenantStep[]) {
  const store = whole.of(given.tenant);
  switch (given.what) {
    case 'capture':
      return keep(store, given.space, given.text);
    case 'purge': {
      const scope =
        given.text === undefined
          ? ({ all: true } as const)
          : { digests: [objectOf(given.text).digest] };
      const order = { space: given.space, scope, isDryRun: false, requestedBy: 'k', now: 6 };
      const purgeId = newPurgeId();
      await store.beginPurge({ ...order, purgeId });
      while (!(await store.continuePurge(purgeId, 7)));
      return undefined;
    }
    case 'key': {
      const isKnown = before.some(
        (one) => one.what === 'key' && one.tenant === given.tenant && one.name === given.name,
      );
      if (isKnown) return undefined;
      const key = { name: given.name, hash: 'h', scopes: [], createdAt: 1 };
      return addKeyTo(store, { ...key, keyId: `${given.tenant}-${given.name}` });
    }
    case 'revoke':
      // Each tries to revoke the other's key, too.
      return Promise.all(TENANTS.map((one) => revokeKeyOf(store, `${one}-${given.name}`)));
    case 'provider': {
      // Ids of two tenants differ; equal ones show that the tenant counts as well.
      const [providerId, secretId] = [`prov_${given.name}`, `sec_${given.name}`];
      const known = (await store.listProviders()).find((one) => one.providerId === providerId);
      const version = (known?.version ?? 0) + 1;
      const credential = { secretId, fingerprint: given.tenant, savedAt: 1 };
      const provider = { providerId, name: given.name, credential, version };
      return putProvider(
        store,
        providerOf({ ...provider, allowedModels: [given.name] }),
        known?.version,
      );
    }
    case 'remove':
      return removeProvider(store, `prov_${given.name}`);
    case 'receipt': {
      // Ids of two tenants differ; equal ones show that the tenant counts as well.
      const receiptId = RECEIPT_IDS[given.name === 'one' ? 0 : 1] ?? '';
      const row = rowOfReceipt({ tenant: given.tenant, receiptId, keyId: given.name });
      return whole.storeReceipts([{ ...row, seq: before.length + 1 }]);
    }
    case 'settings': {
      const { version, ...settings } = await store.getSettings();
      const change = { ...settings, inputBudget: given.name === 'one' ? 2000 : 3000 };
      return store.apply(
        { what: 'settings.put', settings: change, ifVersion: version },
        noteOfTest('settings.updated'),
      );
    }
    case 'answer': {
      // Keys of two tenants have different ids; equal ones show that the tenant counts as well.
      const asked = { keyId: 'same', idempotencyKey: given.name };
      return store.keepAnswer(asked, { requestHash: given.text, body: '{}', at: Date.now() });
    }
  }
}

async function keep(store: TenantStore, where: string, said: string): Promise<unknown> {
  const batch = { space: where, ifGeneration: undefined, objects: [objectOf(said)], now: 5 };
  return store.capture(batch, patience());
}

const AGENT = { conversation: 'now', branch: '', quietShare: 0, briefTokensMax: 125 } as const;

/** A session that asks for lines and a brief, and that recall never keeps quiet for. */
const agent = { conversation: 'asks', branch: '', quietShare: 0, briefTokensMax: 500 };

/** Everything that the port tells, without the numbers that a file counts for all of its tenants. */
async function viewOf(store: TenantStore): Promise<unknown> {
  const everything = itemsOf({ spaces: { globs: undefined } });
  const refs = WORDS.map((word) => objectOf(word).ref);
  const candidates = WORDS.map((word) => objectOf(word).digest);
  const question = { humanText: 'which port, and which code word at noon?', candidates };
  const seen = await Promise.all([
    store.listItems(everything, patience()),
    store.listItems({ ...everything, spaces: { globs: ['project/*'] } }, patience()),
    store.listSources(everything, patience()),
    store.listPurges(everything, patience()),
    store.retrieve({ spaces: { globs: undefined }, refs, bytesMax: 9e6 }, patience()),
    store.retrieve({ spaces: { space: 'default' }, refs: candidates, bytesMax: 9e6 }, patience()),
    ...SPACES.map((one) => store.spaceState(one, patience())),
    ...SPACES.map((one) =>
      store.recall(questionTo({ ...question, space: one, otherSpaces: SPACES }), patience()),
    ),
    ...SPACES.map((one) =>
      store.recall(
        questionTo({ ...question, agent: AGENT, space: one, olderSpaces: SPACES }),
        patience(),
      ),
    ),
    ...SPACES.map((one) =>
      store.recall(
        questionTo({ ...question, space: one, otherSpaces: ['global'], agent }),
        patience(),
      ),
    ),
    store.listKeys(),
    store.listAudit({ limit: 99, after: undefined }),
    store.listProviders(),
    store.getSettings(),
    store.listReceipts({ limit: 99, order: 'asc' }, patience()),
    store.listHeads({ limit: 99, after: undefined }),
    store.listUsage({ from: '2000-01-01', to: '2999-12-31', groups: ['day', 'key'], limit: 99 }),
    store.tokensSpent({ from: '2000-01-01', to: '2999-12-31' }, patience()),
    store.findSecret('sec_one'),
    store.findSecret('sec_two'),
    store.listLeases(''),
    store.findAnswer({ keyId: 'same', idempotencyKey: 'one' }, patience()),
    store.findAnswer({ keyId: 'same', idempotencyKey: 'two' }, patience()),
  ]);
  const counted = new Set([
    'lastSeq',
    'item_id',
    'source_id',
    'purge_id',
    'at',
    'event_id',
    'hash',
    'previous',
  ]);
  return JSON.parse(
    JSON.stringify(seen, (member, value: unknown) => {
      if (counted.has(member)) return undefined;
      return /^generation/i.test(member) ? String(value).split('.')[1] : value;
    }),
  );
}
