import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { LiveRequests } from '../../src/local/ui/live-requests.ts';
import { memoryRoutes } from '../../src/local/ui/memory-calls.ts';
import { requestRoutes } from '../../src/local/ui/request-calls.ts';
import { savingsRoutes } from '../../src/local/ui/savings-calls.ts';
import type { ApiCall, UiRoute } from '../../src/local/ui/ui-routes.ts';
import type { RequestLog, RequestRow, RequestSum } from '../../src/ports/request-log.ts';
import type { MemoryAnswer, SavingsAnswer } from '../../src/ports/ui-api.ts';
import { InFlight } from '../../src/proxy/in-flight.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { recordOf } from '../support/records.ts';
import { requestRow } from '../support/request-row.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { withNews } from '../../src/ui/views/activity.ts';

/** Lists and sums stay small and cheap, however long the request log is. */

const NOW = Date.parse('2026-11-20T12:00:00Z');

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The lists read no other member.
const ROW = {
  id: 'req_1',
  at: NOW - 1000,
  conversation: 's1',
  items: [{ edit: 'same', count: 400, tokens: 9000 }],
  elidedRefs: ['m_aaaaaaaaaaaaaaaa'],
} as unknown as RequestRow;

function logOf(rows: RequestRow[]) {
  const asked: number[] = [];
  const log: RequestLog = {
    add: () => undefined,
    addQuota: () => undefined,
    quota: async () => [],
    trial: async () => ({ conversations: { with: 0, without: 0 }, results: [] }),
    list: async ({ limit }) => rows.slice(0, limit),
    find: async () => rows,
    conversation: async () => rows,
    sum: async ({ since }): Promise<RequestSum[]> => {
      asked.push(since);
      return [];
    },
  };
  return { log, asked };
}

async function call(routes: readonly UiRoute[], name: string, query = ''): Promise<object> {
  const [, answer] = routes.find(([one]) => one === name) ?? [];
  const asked: ApiCall = { query: new URLSearchParams(query), body: undefined };
  return (await answer?.(asked)) ?? {};
}

test('a row of a list says nothing of its items: they are for the view of one request', async () => {
  const { log } = logOf([ROW]);
  const live = new LiveRequests(new InFlight());
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- No list asks the memory.
  const parts = { about: () => ({}), live, requestLog: log, memory: {}, now: () => NOW } as never;
  const routes = requestRoutes(parts);
  for (const [name, query] of [['GET now'], ['GET requests'], ['GET conversation', 'id=s1']]) {
    const text = JSON.stringify(await call(routes, name ?? '', query));
    expect(text).toContain('req_1');
    expect(text).not.toMatch(/items|elidedRefs/);
  }
});

test('savings are summed a day at a time, and only days that can have changed are summed again', async () => {
  const rows = [ROW];
  const { log, asked } = logOf(rows);
  let now = NOW;
  const routes = savingsRoutes(log, () => now);
  const get = async (days: number): Promise<number> => {
    const before = asked.length;
    await call(routes, 'GET savings', `days=${days}`);
    return asked.length - before;
  };
  expect(await get(14)).toBe(14);
  expect(new Set(asked.slice(0, 14)).size).toBe(14);
  expect([await get(14), await get(7)]).toEqual([0, 0]);
  // The other scope has its first days already.
  expect(await get(30)).toBe(16);
  // A request that began yesterday may have ended just now.
  rows.unshift({ ...ROW, id: 'req_2' });
  expect([await get(14), await get(14)]).toEqual([2, 0]);
  // The log drops old rows by and by.
  now += 601_000;
  expect(await get(14)).toBe(14);
});

test('rows that a clock ahead has dated tomorrow are neither of today nor of the days before', async () => {
  const store = openEmbeddedStore({ folder: tempFolder(), report: () => undefined });
  onTestFinished(() => store.close());
  const DAY_MS = 86_400_000;
  const miss = { by: 'time', tokens: 9_000, price: 9_000 } as const;
  store.requestLog.add(requestRow({ id: 'today', at: NOW }));
  store.requestLog.add(requestRow({ id: 'tomorrow', at: NOW + DAY_MS, miss }));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- This call needs no other part.
  const parts = { requestLog: store.requestLog, now: () => NOW } as never;
  const today = await call(requestRoutes(parts), 'GET today');
  expect(today).toMatchObject({ requests: 1, misses: { times: 0 }, culprits: [] });
  const routes = savingsRoutes(store.requestLog, () => NOW);
  const { sums } = (await call(routes, 'GET savings', 'days=7')) as SavingsAnswer;
  expect(sums.map(({ requests }) => requests)).toEqual([1]);
});

test('a session of any length is named by its first prompt, and its memories by all requests that quoted them', async () => {
  const store = openEmbeddedStore({ folder: tempFolder(), report: () => undefined });
  onTestFinished(() => store.close());
  const { memory, desk, requestLog } = store;
  const at = (exchange: number) => NOW + exchange * 1000;
  const records = Array.from({ length: 150 }, (_, exchange) => [
    recordOf(`Prompt ${exchange} of the harbour.`, { exchange, at: at(exchange) }),
    recordOf(`Answer ${exchange}.`, { exchange, at: at(exchange), role: 'assistant' }),
  ]).flat();
  await memory.capture(records, AbortSignal.timeout(30_000));
  const [prompt, answer] = records.map(({ digest }) => referenceOf(digest));
  const recall = { exchange: 0, refs: [answer ?? ''], isUsed: false };
  requestLog.add(requestRow({ id: 'quotes', at: NOW, recall }));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- This call needs no other part.
  const parts = {
    memory,
    desk,
    sightings: (refs: readonly string[]) => desk.sightings(refs),
    now: () => NOW,
  } as never;
  const found = (await call(memoryRoutes(parts), 'GET memory', `ref=${prompt}`)) as MemoryAnswer;
  expect(found.session).toBe('Prompt 0 of the harbour.');
  expect(found.sightings.map(({ id }) => id)).toEqual(['quotes']);
});

test('a session of a memory service that is too long to be read to its beginning has no name', async () => {
  const memory = new FakeMemory();
  const prompts = (count: number, conversation: string) =>
    Array.from({ length: count }, (_, exchange) =>
      recordOf(`Prompt ${exchange} of ${conversation}.`, { exchange, conversation, at: exchange }),
    );
  await memory.capture(
    [...prompts(199, 's1'), ...prompts(201, 's2')],
    new AbortController().signal,
  );
  const parts = { memory, desk: undefined, sightings: async () => [] };
  const titled = { space: 'project', conversation: 's1' };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- These calls need no other part.
  const routes = [...requestRoutes(parts as never), ...memoryRoutes(parts as never)];
  const body = { conversations: [titled, { ...titled, conversation: 's2' }] };
  const [, titles] = routes.find(([one]) => one === 'POST titles') ?? [];
  expect(await titles?.({ query: new URLSearchParams(), body })).toEqual({
    titles: { s1: 'Prompt 0 of s1.', s2: '' },
  });
});

test('a request that ends while the page loads the list is in it once', () => {
  const [old, ended, next] = [1, 2, 3].map((number) => requestRow({ id: `req_${number}` }));
  const loaded = { open: [], recent: [ended, old].flatMap((row) => row ?? []) };
  // The event comes a quarter of a second after the end of a request, so after the list.
  const finished = [ended, next].flatMap((row) => row ?? []);
  const { recent } = withNews(loaded, { open: [], finished });
  expect(recent.map(({ id }) => id)).toEqual(['req_3', 'req_2', 'req_1']);
});
