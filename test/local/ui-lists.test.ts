import { expect, test } from 'vitest';
import { LiveRequests } from '../../src/local/ui/live-requests.ts';
import { requestRoutes } from '../../src/local/ui/request-calls.ts';
import { savingsRoutes } from '../../src/local/ui/savings-calls.ts';
import type { ApiCall, UiRoute } from '../../src/local/ui/ui-routes.ts';
import type { RequestLog, RequestRow, RequestSum } from '../../src/ports/request-log.ts';
import { InFlight } from '../../src/proxy/in-flight.ts';

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

test('savings are summed once, and again when the log has a newer request or ten minutes went by', async () => {
  const rows = [ROW];
  const { log, asked } = logOf(rows);
  let now = NOW;
  const routes = savingsRoutes(log, () => now);
  for (let time = 0; time < 3; time += 1) await call(routes, 'GET savings', 'days=14');
  expect(asked.length).toBe(1);
  await call(routes, 'GET savings', 'days=7');
  expect(asked.length).toBe(2);
  rows.unshift({ ...ROW, id: 'req_2' });
  await call(routes, 'GET savings', 'days=14');
  expect(asked.length).toBe(3);
  now += 601_000;
  await call(routes, 'GET savings', 'days=14');
  expect(asked.length).toBe(4);
});
