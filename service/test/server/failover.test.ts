import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openPostgresStore } from '../../src/adapters/postgres-store/postgres-service-store.ts';
import { promptOf } from '../../../test/support/dialect-wire.ts';
import { openModelService } from '../support/model-service.ts';
import { missingPostgres } from '../support/postgres.ts';
import { openNode, startPair } from '../support/postgres-pair.ts';
import { itemsOf } from '../support/service-objects.ts';

/**
 * Traffic goes on while the primary is killed and, 5 s later, its standby is promoted. No request to a
 * model fails, and afterwards every receipt and every memory is there.
 */

const missing = missingPostgres();
const DIALECT = 'anthropic_messages';
const CLIENTS = 4;
const OUTAGE_MS = 5000;
/** For the traffic before and after. */
const AROUND_MS = 4000;
const BACK_MS = 3000;
const patience = (): AbortSignal => AbortSignal.timeout(60_000);

interface Sent {
  readonly text: string;
  readonly status: number;
  readonly receiptId: string;
  readonly state: string;
  readonly at: number;
  readonly ms: number;
}

describe.skipIf(missing !== undefined)('a service whose primary is lost', () => {
  test('fails no request, loses no receipt and no memory, and recalls again within 3 s', async () => {
    const pair = await startPair();
    const store = await openNode(pair.address, { trustsFailover: true });
    const opened = await openModelService({ store, recallMs: 2000 });
    const { addProvider, makeKey, send, service } = opened;
    service.changes.start();
    await addProvider(DIALECT);
    const key = await makeKey();
    const sent: Sent[] = [];
    const over = new AbortController();
    const client = async (number: number): Promise<void> => {
      for (let at = 0; !over.signal.aborted; at += 1) {
        const text = `Client ${number} says that its fact ${at} is marmalade number ${number * 1000 + at}.`;
        const began = performance.now();
        /* oxlint-disable no-await-in-loop -- One request after the other. */
        const { status, headers } = await send(DIALECT, promptOf(DIALECT, text), { key });
        sent.push({
          text,
          status,
          receiptId: String(headers['x-svc-receipt-id']),
          state: String(headers['x-svc-memory-state']),
          at: performance.now(),
          ms: performance.now() - began,
        });
        await sleep(30);
        /* oxlint-enable no-await-in-loop */
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, number) => client(number));
    await sleep(AROUND_MS);
    const killed = performance.now();
    await pair.primary.kill();
    await sleep(OUTAGE_MS);
    // The standby may take calls before this returns.
    const promotes = performance.now();
    await pair.promote();
    const promoted = performance.now();
    await sleep(AROUND_MS + BACK_MS);
    over.abort();
    await Promise.all(clients);

    const during = sent.filter(({ at }) => at > killed + 1000 && at < promotes);
    expect(during.length).toBeGreaterThan(CLIENTS);
    expect(sent.filter(({ status }) => status !== 200)).toEqual([]);
    expect(during.every(({ state }) => state.startsWith('degraded'))).toBe(true);
    const back = sent.find(({ at, state }) => at > promoted && !state.startsWith('degraded'));
    expect((back?.at ?? Infinity) - promoted).toBeLessThan(BACK_MS);

    await service.flush();
    // One question for all of them may take longer than a request's.
    const whole = openPostgresStore({ server: pair.address, statementMs: 60_000 });
    onTestFinished(() => whole.close());
    const held = await whole
      .of('default')
      .listItems(
        itemsOf({ spaces: { globs: undefined }, limit: 100_000, role: 'user' }),
        patience(),
      );
    const texts = new Set(held.map(({ text }) => text));
    expect(sent.filter(({ text }) => !texts.has(text))).toEqual([]);
    const stored = async (): Promise<number> => {
      const found = await Promise.all(
        sent.map(({ receiptId }) => store.of('default').findReceipt(receiptId, patience())),
      );
      return found.filter((one) => one !== undefined).length;
    };
    await expect.poll(stored, { timeout: 30_000 }).toBe(sent.length);
  }, 240_000);
});
