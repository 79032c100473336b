import { expect, test } from 'vitest';
import { limiterOf } from '../support/limits.ts';
import { openConsole, type OpenedConsole } from '../support/console.ts';
import type { TestServiceOptions } from '../support/memory-service.ts';

/** A tenant with a limit of memory calls, and two keys of it. */
async function openLimited(
  options: TestServiceOptions = {},
  limits: object = { memory_calls_per_minute: 12 },
): Promise<OpenedConsole & { readonly keys: readonly string[] }> {
  const opened = await openConsole(options);
  await opened.ask('POST plans', { name: 'small', limits });
  await opened.ask('POST tenants', { tenant_id: 'acme', plan: 'small' });
  const keys: string[] = [];
  for (const name of ['one', 'two']) {
    const body = { name, scopes: ['read'] };
    // oxlint-disable-next-line no-await-in-loop
    keys.push((await opened.ask('POST keys', body, { tenant: 'acme' })).json.secret);
  }
  return { ...opened, keys };
}

test('memory calls of a tenant are limited over all of its keys; other tenants go on', async () => {
  const { ask, askMemory, keys, clock } = await openLimited();
  const [one = '', two = ''] = keys;
  const free = (await ask('POST keys', { name: 'f', scopes: ['read'] })).json.secret;
  expect((await askMemory('memory/items', one)).status).toBe(200);
  const refused = await askMemory('memory/items', two);
  expect(refused.json.error).toMatchObject({
    code: 'RATE_LIMIT_EXCEEDED',
    param: 'memory_calls_per_minute',
    message: 'The limit memory_calls_per_minute is reached.',
    retry: { action: 'after_delay', after_ms: 5000 },
  });
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, '5']);
  // Another tenant of the same plan has a count of its own.
  await ask('POST tenants', { tenant_id: 'globex', plan: 'small' });
  const body = { name: 'g', scopes: ['read'] };
  const other = (await ask('POST keys', body, { tenant: 'globex' })).json.secret;
  expect((await askMemory('memory/items', other)).status).toBe(200);
  // It asks the memory nothing, so it is no memory call.
  expect((await askMemory('whoami', two)).status).toBe(200);
  for (let calls = 0; calls < 5; calls += 1) {
    // oxlint-disable-next-line no-await-in-loop
    expect((await askMemory('memory/items', free)).status).toBe(200);
  }
  clock.goOn(5000);
  expect((await askMemory('memory/items', two)).status).toBe(200);
});

test('a plan that changes holds from the next call on', async () => {
  const { ask, askMemory, keys } = await openLimited();
  const [one = ''] = keys;
  await askMemory('memory/items', one);
  expect((await askMemory('memory/items', one)).status).toBe(429);
  await ask('PUT plans/small', { limits: {} });
  expect((await askMemory('memory/items', one)).status).toBe(200);
});

const THROWS = limiterOf(() => {
  throw new Error('CANARY');
});
const REJECTS = limiterOf(async () => Promise.reject(new Error('CANARY')));
const HANGS = limiterOf(() => new Promise(() => undefined));

test.each([
  ['throws', THROWS],
  ['rejects', REJECTS],
  ['hangs', HANGS],
])('a limiter that %s blocks the call, and nobody without a limit', async (_, limiter) => {
  const { ask, askMemory, keys } = await openLimited({ limiter });
  const blocked = await askMemory('memory/items', keys[0] ?? '');
  expect([blocked.status, blocked.json.error.code]).toEqual([503, 'RATE_LIMITER_UNAVAILABLE']);
  expect(blocked.headers['retry-after']).toBe('2');
  expect(blocked.text).not.toContain('CANARY');
  const free = (await ask('POST keys', { name: 'f', scopes: ['read'] })).json.secret;
  expect((await askMemory('memory/items', free)).status).toBe(200);
});

test('a limiter that fails once is asked again at once', async () => {
  let asked = 0;
  const limiter = limiterOf(async () => {
    asked += 1;
    if (asked === 1) throw new Error('the connection was lost');
    return { refusedBy: undefined, waitMs: 0 };
  });
  const { askMemory, keys } = await openLimited({ limiter });
  expect((await askMemory('memory/items', keys[0] ?? '')).status).toBe(200);
  expect(asked).toBe(2);
});

test('without any limit no limiter is asked', async () => {
  const { askMemory, keys } = await openLimited({ limiter: THROWS }, {});
  expect((await askMemory('memory/items', keys[0] ?? '')).status).toBe(200);
});
