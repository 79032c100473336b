import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { answerTo, promptOf } from '../../../test/support/dialect-wire.ts';
import { callService } from '../support/memory-service.ts';
import { type ModelService, openModelService } from '../support/model-service.ts';

/** Where captures and receipt are when a client has the last byte of its answer. */

const DIALECT = 'anthropic_messages';
const SAID = 'The staging database of the walrus shop listens on port 6431 since May.';

async function openStage(durability: 'journal' | 'store'): Promise<{
  readonly stage: ModelService;
  readonly key: string;
  readonly ask: (isStreamed: boolean) => Promise<{ readonly id: string; readonly texts: number }>;
  readonly receiptOf: (id: string) => Promise<Record<string, unknown>>;
}> {
  const stage = await openModelService({ durability });
  const { send, makeKey, addProvider, provider, service } = stage;
  await addProvider(DIALECT);
  const key = await makeKey();
  let count = 0;
  const ask = async (isStreamed: boolean) => {
    count += 1;
    provider.reply = (request) =>
      answerTo(request, { text: `Noted, it is port 6431 on host ${count}.`, isStreamed });
    const body = promptOf(DIALECT, `${SAID} Number ${count}.`, { stream: isStreamed });
    const answer = await send(DIALECT, body, { key });
    expect(answer.status).toBe(200);
    expect(answer.body.toString()).toContain(`host ${count}`);
    if (isStreamed) expect(answer.body.toString()).toContain('message_stop');
    // At this very moment, without waiting for anything.
    const { records } = await service.store.health();
    return { id: String(answer.headers['x-svc-receipt-id']), texts: records };
  };
  const receiptOf = async (id: string): Promise<Record<string, unknown>> => {
    const found = async () => callService(service.url, `/v1/svc/requests/${id}`, { key });
    await expect.poll(async () => (await found()).status).toBe(200);
    return (await found()).json as Record<string, unknown>;
  };
  return { stage, key, ask, receiptOf };
}

test('with durability "store" the last byte comes when captures and receipt are in the store', async () => {
  const { stage, key, ask, receiptOf } = await openStage('store');
  let kept = 0;
  let stored = 0;
  for (const isStreamed of [true, false, true]) {
    // oxlint-disable-next-line no-await-in-loop
    const { id, texts } = await ask(isStreamed);
    // oxlint-disable-next-line no-await-in-loop
    const now = await callService(stage.service.url, `/v1/svc/requests/${id}`, { key });
    // oxlint-disable-next-line no-await-in-loop
    const receipt = await receiptOf(id);
    kept += Number(receipt['captured_records']);
    // A busy machine may need longer than 50 ms; then the receipt says so.
    if (receipt['durability'] === 'journal') continue;
    stored += 1;
    expect(texts).toBe(kept);
    expect(now.status).toBe(200);
    expect(receipt).toMatchObject({ capture_state: 'stored', status: 'completed' });
    expect(receipt['response_sha256']).toMatch(/^[0-9a-f]{64}$/);
  }
  expect(stored).toBeGreaterThan(0);
});

test('a store that is late holds the last byte for 50 ms at most, and the receipt says journal', async () => {
  const { stage, ask, receiptOf } = await openStage('store');
  const { store } = stage.service;
  const own = store.of('default');
  const take = own.capture.bind(own);
  vi.spyOn(store, 'of').mockReturnValue(own);
  vi.spyOn(own, 'capture').mockImplementation(async (batch, signal) => {
    await sleep(3000);
    return take(batch, signal);
  });
  const began = performance.now();
  const { id, texts } = await ask(true);
  expect(performance.now() - began).toBeLessThan(2500);
  vi.restoreAllMocks();
  expect(texts).toBe(0);
  expect(await receiptOf(id)).toMatchObject({
    durability: 'journal',
    capture_state: 'deferred',
    status: 'completed',
  });
  await expect.poll(async () => (await store.health()).records, { timeout: 20_000 }).toBe(2);
});

test('with durability "journal" no byte waits', async () => {
  const { ask, receiptOf } = await openStage('journal');
  const { id } = await ask(true);
  expect(await receiptOf(id)).toMatchObject({ durability: 'journal', capture_state: 'deferred' });
});
