import { expect, onTestFinished, test, vi } from 'vitest';
import { openHostedMemoryWithOutbox } from '../../src/adapters/memory-client/open-hosted-memory.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { MemoryError } from '../../src/core/errors.ts';
import { referenceOf, textDigest } from '../../src/core/memory/reference.ts';
import type { ForgetFilter, Memory } from '../../src/ports/memory.ts';
import { said } from '../support/dialect-wire.ts';
import { recordOf } from '../support/records.ts';
import type { TenantStore } from '../../service/src/ports/service-store.ts';
import { withTenantsChanged } from '../../service/src/server/change-watch.ts';
import { type TestService, startMemoryService } from '../../service/test/support/memory-service.ts';
import { BINDING, FACTS, QUESTION, SECOND, startTalk } from '../support/strict-talk.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** R26: another machine purges a record of a memory service that blocks on this machine quote. */

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const blocksIn = (body: string): string[] => body.match(/<svc-memory .*?<\/svc-memory>/g) ?? [];
const asked = said('user', QUESTION);
const second = said('user', SECOND);
const third = said('user', 'Paint the mountains in winter, please.');

/** A service whose store a test changes. */
const serviceWith = (change: (own: TenantStore) => Partial<TenantStore>): Promise<TestService> =>
  startMemoryService({ wrapStore: (store) => withTenantsChanged(store, change) });

async function machine(service: TestService, folder = tempFolder()) {
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const serviceKey = await service.makeKey();
  const hosted = openHostedMemoryWithOutbox({
    settings: { kind: 'hosted', baseUrl: service.url, serviceKey, allowPrivate: true },
    recallMs: 10_000,
    mirror: store.memory,
    state: store.state,
    report: () => undefined,
  });
  const close = async (): Promise<void> => {
    await hosted.close();
    await store.close();
  };
  onTestFinished(close);
  return { folder, hosted, memory: hosted.memory, close };
}

async function forgetElsewhere(service: TestService, filter: ForgetFilter): Promise<void> {
  const { memory } = await machine(service);
  expect(await memory.forget(filter, patience())).toBeGreaterThan(0);
}

/** After two prompts, each with a block, and their answers. */
async function twoBlocks(service: TestService, model: string, see = (memory: Memory) => memory) {
  const here = await machine(service);
  await here.hosted.watch();
  const talk = await startTalk({ memory: see(here.memory), folder: here.folder });
  const one = await talk.ask([asked], { model });
  const two = await talk.ask([asked, one.item, second], { model });
  const blocks = blocksIn(two.sent);
  expect(blocks).toHaveLength(2);
  const items = [asked, one.item, second, two.item, third];
  /** The blocks of the first form that the provider gets. */
  const send = async (): Promise<readonly string[]> => {
    const from = talk.provider.seen.length;
    await talk.ask(items, { model });
    return blocksIn(talk.provider.seen[from]?.body.toString() ?? '');
  };
  return { ...here, ...talk, blocks, send };
}

const WALRUS = { refs: [referenceOf(textDigest('user', FACTS[0] ?? ''))], space: 'default' };

test.each([
  ['a bound conversation', BINDING, 'a record', WALRUS],
  ['a bound conversation', BINDING, 'its space', { space: 'default' }],
  ['an unbound conversation', 'claude-opus-4-5', 'a record', WALRUS],
  ['an unbound conversation', 'claude-opus-4-5', 'its space', { space: 'default' }],
])('%s (%s) sends no block again after another machine has purged %s', async (...given) => {
  const [, model, , filter] = given;
  const service = await startMemoryService();
  const { send, blocks } = await twoBlocks(service, model);
  await forgetElsewhere(service, filter);
  const left = 'refs' in filter ? blocks.slice(1) : [];
  // The next recall shows the new generation.
  await expect.poll(send, { timeout: 20_000 }).toEqual(left);
  expect(await send()).toEqual(left);
});

test('a purge of one space empties its blocks although another space has the same texts', async () => {
  const service = await startMemoryService();
  const here = await machine(service);
  await here.hosted.watch();
  const { ask, story } = await startTalk({ memory: here.memory, folder: here.folder });
  const space = 'elsewhere';
  const copies = FACTS.map((text) => recordOf(text, { space, conversation: text }));
  await story.memory.capture(copies, patience());
  const headers = { 'session-id': 'in-elsewhere', 'x-svc-memory-space': space };
  const other = await ask([asked], { headers });
  const one = await ask([asked]);
  expect(blocksIn(one.sent)).toEqual(blocksIn(other.sent));
  expect(blocksIn(one.sent)).toHaveLength(1);
  await forgetElsewhere(service, { space: 'default' });
  const next = said('user', 'Paint the mountains, please.');
  const send = async () => blocksIn((await ask([asked, one.item, next])).sent);
  await expect.poll(send, { timeout: 20_000 }).toEqual([]);
  const kept = await ask([asked, other.item, next], { headers });
  expect(blocksIn(kept.sent)).toEqual(blocksIn(other.sent));
});

test('a purge while no proxy ran is seen when the next one starts, without a request in its space', async () => {
  const service = await startMemoryService();
  const { folder, story, close, send, blocks } = await twoBlocks(service, BINDING);
  expect(await send()).toEqual(blocks);
  await story.stop();
  await close();
  await forgetElsewhere(service, WALRUS);
  const again = await machine(service, folder);
  await again.hosted.watch();
  const seen = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => seen.close());
  const placed = async () => (await seen.memory.placed()).get('default')?.size;
  await expect.poll(placed, { timeout: 20_000 }).toBe(1);
});

test('blocks are emptied although the service fails when svc asks what was purged', async () => {
  let failures = 0;
  const service = await serviceWith((own) => ({
    retrieve: (...given) => {
      failures += 1;
      if (failures > 2) return own.retrieve(...given);
      throw new MemoryError('unavailable', 'The store is away.');
    },
  }));
  const { send, blocks } = await twoBlocks(service, BINDING);
  failures = 0;
  await forgetElsewhere(service, { space: 'default' });
  await expect.poll(send, { timeout: 20_000 }).toEqual([]);
  expect([blocks.length, failures]).toEqual([2, 3]);
});

test('blocks are emptied although svc asks what was purged before the records are gone', async () => {
  let hasBegun = false;
  let hasAsked = false;
  const service = await serviceWith((own) => ({
    beginPurge: async (order) => {
      const purge = await own.beginPurge(order);
      hasBegun = true;
      return purge;
    },
    retrieve: async (...given) => {
      const found = await own.retrieve(...given);
      hasAsked = hasBegun;
      return found;
    },
    continuePurge: async (...given) => {
      await vi.waitUntil(() => hasAsked, { timeout: 9000 });
      return own.continuePurge(...given);
    },
  }));
  const { send, blocks } = await twoBlocks(service, BINDING);
  const forgotten = forgetElsewhere(service, WALRUS);
  await vi.waitUntil(() => hasBegun, { timeout: 9000 });
  expect(await send()).toEqual(blocks);
  await forgotten;
  await expect.poll(send, { timeout: 20_000 }).toEqual(blocks.slice(1));
});
