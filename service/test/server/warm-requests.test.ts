import { Worker } from 'node:worker_threads';
import { expect, test, vi } from 'vitest';
import { asRecord } from '../../../src/core/bytes/json-fields.ts';
import { promptOf } from '../../../test/support/dialect-wire.ts';
import { keyIdOf } from '../support/memory-service.ts';
import { openModelService } from '../support/model-service.ts';
import { keepThreads } from '../../../test/support/same-thread.ts';

keepThreads();

/** A model request whose key, providers and settings are known asks the store for none of them. */

const DIALECT = 'anthropic_messages';
const BODY = promptOf(DIALECT, 'Hello');
const OFF = { 'x-svc-memory-mode': 'off' };

async function openWarm() {
  const stage = await openModelService();
  const { changes } = stage.service;
  const provider = await stage.addProvider(DIALECT);
  const key = await stage.makeKey();
  changes.start();
  await changes.look();
  const send = async () => (await stage.send(DIALECT, BODY, { key, headers: OFF })).status;
  const warm = async (): Promise<void> => {
    expect(await send()).toBe(200);
    // What was learned before a look may be remembered after it.
    await changes.look();
    expect(await send()).toBe(200);
  };
  await warm();
  return { stage, key, provider, send, warm };
}

test('the store is asked for nothing but to keep receipts', async () => {
  const { stage, send } = await openWarm();
  const post = vi.spyOn(Worker.prototype, 'postMessage');
  for (let at = 0; at < 10; at += 1) expect(await send()).toBe(200); // oxlint-disable-line no-await-in-loop
  await stage.service.receipts.flush();
  const asked = new Set(post.mock.calls.map(([message]) => asRecord(message)['name']));
  post.mockRestore();
  expect(asked).toContain('storeReceipts');
  for (const name of ['storeReceipts', 'listSigningKeys', 'changesSince']) asked.delete(name);
  expect([...asked]).toEqual([]);
});

test('what this node changes holds for the very next request', async () => {
  const { stage, key, provider, send, warm } = await openWarm();
  await stage.ask('PATCH tenants/default', { status: 'suspended' });
  expect(await send()).toBe(403);
  await stage.ask('PATCH tenants/default', { status: 'active' });
  await warm();
  await stage.ask(`DELETE providers/${provider}`);
  expect(await send()).toBe(422);
  await stage.addProvider(DIALECT);
  await warm();
  await stage.ask(`DELETE keys/${keyIdOf(key)}`);
  expect(await send()).toBe(401);
});
