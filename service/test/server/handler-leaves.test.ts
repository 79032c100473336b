import { expect, onTestFinished, test, vi } from 'vitest';
import { KeyHandler } from '../../src/server/models/key-handlers.ts';
import { promptOf } from '../../../test/support/dialect-wire.ts';
import { openModelService } from '../support/model-service.ts';
import { itemsOf } from '../support/service-objects.ts';

const DIALECT = 'anthropic_messages';
const WORD = 'marmalade';
const patience = () => AbortSignal.timeout(10_000);

test('a handler that makes way while a request runs in it ends that request as if it had stayed', async () => {
  const stage = await openModelService({ bounds: { bytesMax: 256 << 20, handlersMax: 1 } });
  const { send, provider, makeKey, addProvider, service } = stage;
  await stage.ask('POST tenants', { tenant_id: 'acme' });
  await addProvider(DIALECT);
  await addProvider(DIALECT, {}, 'acme');
  const [slow, other] = [await makeKey(), await makeKey({ tenant: 'acme' })];
  const { reply } = provider;
  provider.reply = (request) => {
    const isSlow = request.body.includes(WORD) && !request.body.includes('Which');
    return { ...reply(request), ...(isSlow && { delayMs: 500 }) };
  };
  const told = send(DIALECT, promptOf(DIALECT, `Our deploy code word is ${WORD}.`), { key: slow });
  await expect.poll(() => provider.seen.length, { timeout: 5_000 }).toBe(1);
  const between = await send(DIALECT, promptOf(DIALECT, 'Hello'), { key: other });
  expect([between.status, provider.seen.length]).toEqual([200, 2]);
  const answer = await told;
  expect([answer.status, answer.headers['x-svc-memory-mode']]).toEqual([200, 'read-write']);
  await service.flush();
  const kept = await service.store
    .of('default')
    .listItems(itemsOf({ spaces: { globs: undefined }, words: WORD }), patience());
  expect(kept.map(({ text }) => text)).toEqual([`Our deploy code word is ${WORD}.`]);
  const asked = promptOf(DIALECT, 'Which code word deploys?');
  expect((await send(DIALECT, asked, { key: slow })).headers['x-svc-memory-state']).toBe(
    'recalled',
  );
  expect((await send(DIALECT, asked, { key: other })).headers['x-svc-memory-state']).toBe('empty');
  const id = String(answer.headers['x-svc-receipt-id']);
  await expect
    .poll(async () => (await stage.ask(`GET requests/${id}`)).json, { timeout: 5_000 })
    .toMatchObject({ status: 'completed', memory_state: 'empty', tenant_id: 'default' });
});

test('a giant conversation is served, and takes the room of nobody', async () => {
  const stage = await openModelService({ bounds: { bytesMax: 2 << 20, handlersMax: 100 } });
  const left = vi.spyOn(KeyHandler.prototype, 'leave');
  onTestFinished(() => left.mockRestore());
  const tenants = ['acme', 'bolt', 'core'];
  const keys = new Map<string, string>();
  for (const tenant of tenants) {
    // oxlint-disable-next-line no-await-in-loop
    await stage.ask('POST tenants', { tenant_id: tenant });
    // oxlint-disable-next-line no-await-in-loop
    await stage.addProvider(DIALECT, {}, tenant);
    // oxlint-disable-next-line no-await-in-loop
    keys.set(tenant, await stage.makeKey({ tenant }));
  }
  const send = async (tenant: string, words: string): Promise<number> => {
    const key = keys.get(tenant) ?? '';
    return (await stage.send(DIALECT, promptOf(DIALECT, words), { key })).status;
  };
  expect([await send('acme', 'Hello'), await send('bolt', 'Hello')]).toEqual([200, 200]);
  expect(left).not.toHaveBeenCalled();
  expect(await send('core', 'word '.repeat(600_000))).toBe(200);
  const gone = left.mock.contexts.map((handler) => (handler as KeyHandler).tenant);
  expect(gone).toEqual(['core']);
  expect(await send('core', 'Hello again')).toBe(200);
});
