import { randomBytes } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { contentDigest } from '../../../src/core/memory/reference.ts';
import { proofOf, recordBytes } from '../../../src/core/memory-api/canonical.ts';
import { manualClock } from '../../../test/support/manual-clock.ts';
import { callService, itemOf } from '../support/memory-service.ts';
import { openSocket, readAll } from '../../../test/support/raw-http.ts';
import { FACT, openService as open, SPACE, statesOf } from '../support/open-service.ts';
import { MemoryError } from '../../../src/core/errors.ts';

test('what was captured is durable, recalled, proven and given back', async () => {
  const { capture, recall, ask } = await open();
  const item = itemOf(FACT, 'user', { session_id: 's_01', client: 'claude-code', branch: 'main' });
  const captured = await capture([item]);
  expect(captured.json).toMatchObject({ space: SPACE, commit_seq: 1, deadline_exceeded: false });
  expect(statesOf(captured)).toEqual(['durable']);
  const nonce = randomBytes(32);
  const recalled = await recall({
    query: { text: 'what is the deploy code word?' },
    candidates: [item.digest],
    nonce: nonce.toString('base64url'),
    if_generation: captured.json.generation,
    min_commit_seq: 1,
  });
  expect(recalled.json).toMatchObject({
    nonce: nonce.toString('base64url'),
    degraded: null,
    items: [
      {
        text: FACT,
        verbatim: true,
        provenance: [
          { digest: item.digest, client: 'claude-code', session_id: 's_01', branch: 'main' },
        ],
      },
    ],
    coverage: [
      {
        digest: item.digest,
        state: 'durable',
        bytes: item.bytes,
        pop: proofOf(nonce, recordBytes(item.record) ?? ''),
        item_ids: [recalled.json.items[0].item_id],
      },
    ],
  });
  const given = await ask('memory/retrieve', { body: { space: SPACE, refs: [item.digest] } });
  expect(given.json.objects[0]).toMatchObject({ record: item.record, bytes: item.bytes });
});

test('a record is stored once in a space, and what a client says of its own text is checked', async () => {
  const { capture, ask } = await open();
  const item = itemOf(FACT);
  expect(statesOf(await capture([item, item]))).toEqual(['durable', 'duplicate']);
  expect(statesOf(await capture([item]))).toEqual(['duplicate']);
  expect(statesOf(await capture([item], { space: 'other' }))).toEqual(['durable']);
  const wrong = [
    { ...itemOf('one'), digest: itemOf('two').digest },
    { ...itemOf('three'), bytes: 5 },
    itemOf('  \n '),
  ];
  expect(statesOf(await capture(wrong))).toEqual([
    'rejected digest_mismatch',
    'rejected digest_mismatch',
    'rejected invalid_record',
  ]);
  const state = await ask(`whoami?space=${SPACE}`);
  expect(state.json.space_state).toMatchObject({ commit_seq: 1, records: 1 });
});

test('half a character has no canonical bytes and is rejected alone', async () => {
  const { capture } = await open();
  const half = { ...itemOf('x'), record: { k: 'tool_output', v: 1, t: ['\ud83d'] } };
  expect(statesOf(await capture([half, itemOf('whole')]))).toEqual([
    'rejected invalid_record',
    'durable',
  ]);
});

test('a record of several messages is one record with one text for each', async () => {
  const { capture, recall, ask } = await open();
  const record = {
    k: 'exchange',
    v: 1,
    m: [
      { r: 'user', t: ['Which port does staging use?'] },
      { r: 'assistant', t: ['Staging listens on port 6432.', 'It is behind pgbouncer.'] },
    ],
  } as const;
  const bytes = recordBytes(record) ?? Buffer.alloc(0);
  const item = { ...itemOf('x'), record, bytes: bytes.length, digest: contentDigest(bytes) };
  expect(statesOf(await capture([item]))).toEqual(['durable']);
  const found = await recall({ query: { text: 'staging port pgbouncer' } });
  const roles = found.json.items.map(
    (one: { provenance: { role: string }[] }) => one.provenance[0]?.role,
  );
  expect(roles).toContain('assistant');
  expect((await ask(`memory/items?space=${SPACE}`)).json.data).toHaveLength(2);
  const nothing = await recall({
    query: { text: 'staging port pgbouncer' },
    exclude_digests: [item.digest],
  });
  expect(nothing.json.items).toEqual([]);
});

test('tool outputs are proven and given back, neither recalled nor listed', async () => {
  const { capture, recall, ask } = await open();
  const item = itemOf('line one\nthe vault code is tangerine\nline three', 'tool', {
    tool_name: 'Bash',
  });
  const [result] = (await capture([item])).json.results;
  expect(result).toMatchObject({ state: 'durable', ref: expect.stringMatching(/^to_/) });
  expect((await recall({ query: { text: 'vault code tangerine' } })).json.items).toEqual([]);
  expect((await ask(`memory/items?q=tangerine`)).json.data).toEqual([]);
  const text = await ask(`memory/objects/${result.ref}?space=${SPACE}&offset_line=2&max_lines=1`);
  expect(text.text).toBe('the vault code is tangerine');
  expect(text.headers).toMatchObject({ 'x-svc-total-lines': '3', 'x-svc-digest': item.digest });
  expect((await ask(`memory/objects/to_aaaaaaaaaaaaaaaa?space=${SPACE}`)).status).toBe(404);
});

test('what was masked is stored and recalled, and never proven', async () => {
  const { capture, recall } = await open();
  const item = itemOf('The password of the zephyr database is [secret].', 'user', {
    redactions: 1,
  });
  await capture([item]);
  const answer = await recall({
    query: { text: 'zephyr database password' },
    candidates: [item.digest],
    nonce: 'A'.repeat(43),
  });
  expect(answer.json.items).toHaveLength(1);
  expect(answer.json.coverage).toEqual([
    { digest: item.digest, state: 'not_checked', item_ids: [answer.json.items[0].item_id] },
  ]);
});

test('an Idempotency-Key gives the first answer again, and refuses another body', async () => {
  const { ask } = await open();
  const headers = { 'idempotency-key': 'batch-0001' };
  const body = { space: SPACE, if_generation: 'new', items: [itemOf(FACT)] };
  const first = await ask('memory/capture', { body, headers });
  const second = await ask('memory/capture', { body, headers });
  expect(statesOf(first)).toEqual(['durable']);
  expect(second.text).toBe(first.text);
  const other = { ...body, items: [itemOf('Something else.')] };
  expect(await ask('memory/capture', { body: other, headers })).toMatchObject({
    status: 409,
    headers: { 'x-should-retry': 'false' },
    json: { error: { code: 'IDEMPOTENCY_CONFLICT' } },
  });
  const short = { 'idempotency-key': 'short' };
  expect((await ask('memory/capture', { body, headers: short })).status).toBe(422);
});

test('the same Idempotency-Key at once is answered once, and told to wait meanwhile', async () => {
  const { ask, service } = await open();
  const headers = { 'idempotency-key': 'batch-0002' };
  const items = Array.from({ length: 64 }, (_, at) => itemOf(`Fact ${at} of many. `.repeat(40)));
  const body = { space: SPACE, if_generation: 'new', items };
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => ask('memory/capture', { body, headers })),
  );
  const statuses = answers.map(({ status }) => status);
  expect(statuses).toContain(200);
  for (const answer of answers.filter(({ status }) => status !== 200)) {
    expect(answer).toMatchObject({
      status: 409,
      headers: { 'x-should-retry': 'true', 'retry-after-ms': '500' },
      json: { error: { code: 'IDEMPOTENCY_IN_PROGRESS', retry: { action: 'same_request' } } },
    });
  }
  expect(await service.store.health()).toMatchObject({ records: 64 });
});

test('a body that is not JSON or too large is refused, as the contract has it', async () => {
  const { ask } = await open();
  for (const path of ['recall', 'capture', 'retrieve', 'purges']) {
    // oxlint-disable-next-line no-await-in-loop
    const { status, json } = await ask(`memory/${path}`, { body: '{' });
    expect([path, status, json.error.code]).toEqual([path, 400, 'INVALID_JSON']);
  }
  for (const path of ['retrieve', 'purges']) {
    // oxlint-disable-next-line no-await-in-loop
    const { status } = await ask(`memory/${path}`, { body: ' '.repeat(200_000) });
    expect([path, status]).toEqual([path, 413]);
  }
});

test('a space that is full takes no more, and says so', async () => {
  const { capture } = await open({ spaceBytesMax: 100 });
  expect(statesOf(await capture([itemOf('small'), itemOf('x'.repeat(100))]))).toEqual([
    'durable',
    'rejected quota',
  ]);
});

test('a deadline that has passed leaves whole records undone, which come through when sent again', async () => {
  const { ask, capture, service } = await open();
  await capture([itemOf('the space is known')]);
  const items = Array.from({ length: 64 }, (_, at) =>
    itemOf(`Fact ${at} of very many. `.repeat(400)),
  );
  const body = { space: SPACE, if_generation: 'new', items };
  const { store } = service;
  const tenant = store.of('default');
  const take = tenant.capture.bind(tenant);
  vi.spyOn(store, 'of').mockReturnValue(tenant);
  // The first records are taken, and then the disk hangs.
  vi.spyOn(tenant, 'capture')
    .mockImplementationOnce(take)
    .mockImplementationOnce((_, signal) => untilAborted(signal));
  const late = await ask('memory/capture', { body, headers: { 'x-svc-deadline-ms': '1000' } });
  vi.restoreAllMocks();
  expect(late.json.deadline_exceeded).toBe(true);
  expect(new Set(statesOf(late))).toEqual(new Set(['durable', 'deferred deadline']));
  const again = await ask('memory/capture', { body, headers: { 'x-svc-deadline-ms': '10000' } });
  expect(new Set(statesOf(again))).not.toContain('rejected store_error');
  for (const state of statesOf(again))
    expect(['durable', 'duplicate', 'deferred deadline']).toContain(state);
});

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new MemoryError('timeout', 'aborted')));
  });
}

test('recall looks into the spaces that are named and no other', async () => {
  const { capture, recall } = await open();
  await capture([itemOf('Tangerine sunrise is the wallpaper.')], { space: 'global' });
  await capture([itemOf('Tangerine sunset is the theme.')], { space: 'other' });
  const query = { text: 'tangerine sunrise sunset' };
  expect((await recall({ query })).json.items).toEqual([]);
  const both = await recall({ query, include_spaces: ['global'] });
  expect(both.json.items).toHaveLength(1);
  expect(both.json.items[0].provenance[0].space).toBe('global');
});

// spec: 4.3-health
test('live, ready and health tell a stranger nothing but whether the service works', async () => {
  const clock = manualClock();
  const { service } = await open({ clock });
  for (const path of ['/livez', '/readyz', '/health']) {
    // oxlint-disable-next-line no-await-in-loop
    const { status, json } = await callService(service.url, path);
    expect(status).toBe(200);
    expect(Object.keys(json as object).toSorted()).toEqual(
      path === '/livez' ? ['status'] : ['checks', 'status'],
    );
  }
  await service.store.close();
  // A check is remembered for a second.
  expect((await callService(service.url, '/readyz')).status).toBe(200);
  clock.goOn(1001);
  expect(await callService(service.url, '/readyz')).toMatchObject({
    status: 503,
    json: { status: 'fail' },
  });
  expect((await callService(service.url, '/health')).status).toBe(200);
  expect((await callService(service.url, '/livez')).status).toBe(200);
});

test('a balancer’s check in HTTP/1.0 names no Host and learns whether the service is ready', async () => {
  const { service } = await open();
  const firstLineOf = async (path: string): Promise<string | undefined> => {
    const socket = await openSocket(Number(new URL(service.url).port));
    socket.write(`GET ${path} HTTP/1.0\r\n\r\n`);
    return (await readAll(socket)).split('\r\n')[0];
  };
  expect(await firstLineOf('/readyz')).toBe('HTTP/1.1 200 OK');
  expect(await firstLineOf('/v1/svc/whoami')).toBe('HTTP/1.1 422 Unprocessable Entity');
});
