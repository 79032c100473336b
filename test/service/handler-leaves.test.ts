import { expect, test } from 'vitest';
import { promptOf } from '../support/dialect-wire.ts';
import { openModelService } from '../support/model-service.ts';

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
    .listItems({ ...EVERYTHING, words: WORD }, patience());
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

const EVERYTHING = {
  spaces: { globs: undefined },
  limit: 10,
  offset: 0,
  kind: undefined,
  role: undefined,
  session: undefined,
  sourceId: undefined,
  refs: undefined,
  since: undefined,
  until: undefined,
};
