import { expect, test } from 'vitest';
import { itemOf } from '../support/memory-service.ts';
import { openService as open, SPACE, statesOf } from '../support/open-service.ts';
import { withTenantsChanged } from '../../src/server/change-watch.ts';
import { pause } from '../../../test/support/sockets.ts';

test('a purge changes the generation, leaves tombstones, and refuses what was spooled before it', async () => {
  const { capture, recall, purge, ask } = await open();
  const [secret, other] = [
    itemOf('My locker number is 3117.'),
    itemOf('The locker room is green.'),
  ];
  const before = (await capture([secret, other])).json.generation;
  const dry = await purge({ digests: [secret.digest] }, { dry_run: true });
  expect(dry.json).toMatchObject({
    state: 'dry_run',
    counts: { records: 1 },
    generation_after: before,
  });
  const receipt = (await purge({ digests: [secret.digest] })).json;
  expect(receipt).toMatchObject({
    state: 'erased',
    counts: { records: 1, items: 1, bytes: secret.bytes },
    generation_before: before,
    requested_by: expect.stringMatching(/^\w{12}$/),
  });
  expect(receipt.generation_after).not.toBe(before);
  expect(await ask(`memory/purges/${receipt.purge_id}`)).toMatchObject({
    status: 200,
    json: receipt,
  });
  expect((await ask('memory/purges')).json.data).toEqual([receipt]);
  const stale = await capture([itemOf('late')], { if_generation: before });
  expect(stale).toMatchObject({
    status: 409,
    headers: { 'x-should-retry': 'false' },
    json: {
      error: {
        code: 'STALE_GENERATION',
        details: { current_generation: receipt.generation_after },
      },
    },
  });
  const again = await capture([secret, other], { if_generation: receipt.generation_after });
  expect(statesOf(again)).toEqual(['rejected forgotten', 'duplicate']);
  const nonce = 'A'.repeat(43);
  const candidates = [secret.digest, other.digest];
  const fresh = await recall({ candidates, nonce, query: { text: 'locker number' } });
  expect(fresh.json.coverage.map(({ state }: { state: string }) => state)).toEqual([
    'purged',
    'durable',
  ]);
  expect(JSON.stringify(fresh.json.items)).not.toContain('3117');
  const old = await recall({ candidates, nonce, if_generation: before });
  expect(old.json.coverage.map(({ state }: { state: string }) => state)).toEqual([
    'stale_generation',
    'stale_generation',
  ]);
  expect((await recall({ if_generation: before, require_generation: true })).status).toBe(409);
  const gone = await ask('memory/retrieve', {
    body: { refs: [secret.digest, itemOf('no').digest] },
  });
  expect(gone.json.missing.map(({ reason }: { reason: string }) => reason)).toEqual([
    'purged',
    'unknown',
  ]);
});

test('a digest that was never stored can be forgotten ahead', async () => {
  const { capture, purge } = await open();
  const item = itemOf('not yet said');
  expect((await purge({ digests: [item.digest] })).json.counts.records).toBe(0);
  expect(statesOf(await capture([item]))).toEqual(['rejected forgotten']);
});

test.each([
  ['session_id', { session_id: 's_1' }, ['b', 'c']],
  ['before', { before: '2026-05-02T00:00:00Z' }, ['c']],
  ['all', { all: true }, []],
])('a purge by %s takes what it names and nothing else', async (_, scope, left) => {
  const { capture, purge, ask } = await open();
  const may = (day: number, session: string): object => ({
    observed_at: `2026-05-0${day}T12:00:00Z`,
    session_id: session,
  });
  await capture([
    itemOf('a', 'user', may(1, 's_1')),
    itemOf('b', 'user', may(1, 's_2')),
    itemOf('c', 'user', may(3, 's_2')),
  ]);
  await capture([itemOf('a')], { space: 'other' });
  expect((await purge(scope)).json.state).toBe('erased');
  const listed = await ask(`memory/items?space=${SPACE}`);
  const texts = listed.json.data.map(({ text }: { text: string }) => text);
  expect(texts.toSorted()).toEqual(left);
  expect((await ask('memory/items?space=other')).json.data).toHaveLength(1);
});

test('a purge by source, and sources that count what is left', async () => {
  const { capture, purge, ask } = await open();
  await capture([itemOf('a', 'user', { session_id: 's_1', client: 'codex' }), itemOf('b')]);
  const sources = (await ask(`memory/sources?space=${SPACE}`)).json.data;
  expect(sources).toMatchObject([
    { kind: 'manual', session_id: null, records: 1 },
    { kind: 'conversation', session_id: 's_1', client: 'codex', records: 1 },
  ]);
  expect((await purge({ source_id: sources[1].source_id })).json.counts.records).toBe(1);
  expect((await ask(`memory/sources?space=${SPACE}`)).json.data).toHaveLength(1);
  expect((await purge({ source_id: 'src_999999' })).json.counts.records).toBe(0);
});

test('an item is deleted with its record, in its own space only', async () => {
  const { capture, ask } = await open();
  await capture([itemOf('The tea is green.')]);
  const [item] = (await ask(`memory/items?space=${SPACE}`)).json.data;
  const path = `memory/items/${item.item_id}`;
  expect((await ask(`${path}?space=other`, { method: 'DELETE' })).status).toBe(404);
  expect((await ask(`${path}?space=${SPACE}`, { method: 'DELETE' })).json.counts.records).toBe(1);
  expect((await ask(`${path}?space=${SPACE}`, { method: 'DELETE' })).status).toBe(404);
  expect((await ask(`memory/items?space=${SPACE}`)).json.data).toEqual([]);
});

test('pages follow each other without gaps, and filters narrow them', async () => {
  const { capture, ask } = await open();
  const items = Array.from({ length: 7 }, (_, at) =>
    itemOf(`Fact number ${at} about tangerines.`, at % 2 === 0 ? 'user' : 'assistant', {
      session_id: `s_${at % 3}`,
      observed_at: `2026-05-01T12:00:0${at}.000Z`,
      position: at,
    }),
  );
  await capture(items);
  const seen: string[] = [];
  for (let after = '0'; ;) {
    // oxlint-disable-next-line no-await-in-loop
    const { json } = await ask(`memory/items?space=${SPACE}&limit=3&after=${after}`);
    seen.push(...json.data.map(({ text }: { text: string }) => text));
    if (json.has_more !== true) break;
    after = json.next_cursor;
  }
  expect(seen).toEqual(items.map((_, at) => `Fact number ${6 - at} about tangerines.`));
  const count = async (query: string): Promise<number> =>
    (await ask(`memory/items?${query}`)).json.data.length;
  expect(await count('role=assistant')).toBe(3);
  expect(await count('session_id=s_1')).toBe(2);
  expect(await count('q=tangerine')).toBe(7);
  expect(await count('q=the')).toBe(0);
  expect(await count('kind=fact')).toBe(0);
  expect(await count('since=2026-05-01T12:00:03Z&until=2026-05-01T12:00:04Z')).toBe(2);
  const ref = (await ask('memory/items?limit=1')).json.data[0].provenance[0].ref;
  expect(await count(`refs=${ref}`)).toBe(1);
  expect((await ask('memory/items?after=x')).status).toBe(422);
  expect((await ask('memory/items?limit=101')).status).toBe(422);
});

test('captures and purges that race leave no record of a generation that is over', async () => {
  const { capture, purge, ask, service } = await open();
  const first = (await capture([itemOf('seed')])).json.generation;
  const work = Array.from({ length: 12 }, (_, at) =>
    at % 4 === 3
      ? purge({ session_id: 'nobody' })
      : capture([itemOf(`racer ${at}`)], { if_generation: first }),
  );
  const answers = await Promise.all(work);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]));
  const durable = answers.flatMap(({ status, json }) =>
    status === 200 ? (json.results ?? []) : [],
  );
  const state = (await ask(`whoami?space=${SPACE}`)).json.space_state;
  expect(state.generation).not.toBe(first);
  expect((await service.store.health()).records).toBe(durable.length + 1);
});

test('a purge that is sent again with its Idempotency-Key takes nothing that was said since', async () => {
  const { capture, ask, service } = await open();
  await capture([itemOf('Said before the purge.')]);
  const headers = { 'idempotency-key': 'purge-0001' };
  const body = { space: SPACE, scope: { all: true }, confirm: SPACE };
  const first = await ask('memory/purges', { body, headers });
  expect(first.json).toMatchObject({ state: 'erased', counts: { records: 1 } });
  await capture([itemOf('Said after the purge.')]);
  expect((await ask('memory/purges', { body, headers })).text).toBe(first.text);
  expect(await service.store.health()).toMatchObject({ records: 1 });
  const other = { ...body, scope: { session_id: 's_1' } };
  expect(await ask('memory/purges', { body: other, headers })).toMatchObject({
    status: 409,
    json: { error: { code: 'IDEMPOTENCY_CONFLICT' } },
  });
});

test('a purge that takes longer than the deadline of its call is answered with its receipt', async () => {
  const { capture, ask } = await open({
    wrapStore: (store) =>
      withTenantsChanged(store, (own) => ({
        continuePurge: async (...given) => {
          await pause(400);
          return own.continuePurge(...given);
        },
      })),
  });
  await capture([itemOf('Said before the purge.')]);
  const answer = await ask('memory/purges', {
    body: { space: SPACE, scope: { all: true }, confirm: SPACE },
    headers: { 'x-svc-deadline-ms': '500' },
  });
  expect(answer).toMatchObject({ status: 200, json: { state: 'erased' } });
});
