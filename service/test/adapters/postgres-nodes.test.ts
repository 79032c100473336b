import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findBreak } from '../support/audit-chain.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { answeredOnce } from '../../src/server/operations/capture.ts';
import { ServiceFault } from '../../src/server/fault.ts';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { rowOfReceipt } from '../support/receipt-facts.ts';
import { addKeyTo, addTenant } from '../support/service-control.ts';
import { itemsOf, newPurgeId, objectOf, questionTo, SPACE } from '../support/service-objects.ts';

const missing = missingPostgres();
const patience = (): AbortSignal => AbortSignal.timeout(60_000);

describe.skipIf(missing !== undefined)('several processes on one PostgreSQL', () => {
  const stores = postgresStores();

  async function nodes(count: number): Promise<readonly ServiceStore[]> {
    const address = await stores.address();
    const opened = await Promise.all(Array.from({ length: count }, () => stores.open(address)));
    onTestFinished(async () => {
      await Promise.all(opened.map((one) => one.close()));
    });
    return opened;
  }

  test('they keep the same words once, and number what they keep in one row', async () => {
    const opened = await nodes(3);
    const texts = Array.from({ length: 60 }, (_, at) => `The fact number ${at} is marmalade.`);
    const batches = opened.flatMap((store, node) =>
      // Each takes all of the texts, and begins elsewhere.
      Array.from({ length: 6 }, (_, at) => {
        const from = ((at + node * 2) % 6) * 10;
        const objects = texts.slice(from, from + 10).map((text) => objectOf(text));
        const batch = { space: SPACE, ifGeneration: undefined, objects, now: 5 };
        return store.of('default').capture(batch, patience());
      }),
    );
    const results = (await Promise.all(batches)).flatMap((outcome) => outcome.results ?? []);
    expect(results.filter((state) => state === 'durable')).toHaveLength(texts.length);
    expect(results.filter((state) => state === 'duplicate')).toHaveLength(2 * texts.length);
    const [first, second] = opened.map((store) => store.of('default'));
    expect(await second?.spaceState(SPACE, patience())).toMatchObject({
      records: texts.length,
      commit_seq: texts.length,
    });
    const held = await first?.listItems(itemsOf({ limit: 100 }), patience());
    expect(new Set(held?.map(({ text }) => text))).toEqual(new Set(texts));
    // What one keeps the other recalls with its next question.
    const asked = questionTo({ humanText: 'which fact has number 41?' });
    const { items } = (await second?.recall(asked, patience())) ?? {};
    expect(items?.[0]?.text).toBe(texts[41]);
  }, 120_000);

  test('calls with one Idempotency-Key on several of them at once do the work once', async () => {
    const opened = await nodes(3);
    let done = 0;
    const ask = (store: ServiceStore, key: string, holder: string): Promise<unknown> =>
      answeredOnce(
        {
          store: store.of('default'),
          key: { keyId: 'k', idempotencyKey: key },
          requestHash: 'h',
          holder,
          signal: patience(),
        },
        async () => {
          done += 1;
          await sleep(20);
          return { result: holder, kept: { body: `of ${holder}`, at: Date.now() } };
        },
      ).catch((error: unknown) => (error instanceof ServiceFault ? error.code : error));
    for (let round = 0; round < 10; round += 1) {
      const calls = opened.map((store, at) => ask(store, `batch-${round}`, `${round}.${at}`));
      // oxlint-disable-next-line no-await-in-loop -- One key after the other.
      const answers = await Promise.all(calls);
      expect(done).toBe(round + 1);
      const [winner] = answers.flatMap((one) =>
        typeof one === 'object' && one !== null && 'result' in one ? [String(one.result)] : [],
      );
      const others = answers.filter((one) => typeof one === 'string');
      expect(others.every((code) => code === 'IDEMPOTENCY_IN_PROGRESS')).toBe(true);
      const [first] = opened;
      if (first === undefined) return;
      // oxlint-disable-next-line no-await-in-loop
      expect(await ask(first, `batch-${round}`, 'later')).toEqual({ keptBody: `of ${winner}` });
    }
  }, 120_000);

  test('spaces that they make at the same moment are made once each', async () => {
    const opened = await nodes(3);
    const spaces = Array.from({ length: 8 }, (_, at) => `project/p${at}`);
    await Promise.all(
      opened.flatMap((store) =>
        spaces.map((space) =>
          store
            .of('default')
            .capture(
              { space, ifGeneration: undefined, objects: [objectOf(space)], now: 5 },
              patience(),
            ),
        ),
      ),
    );
    const [first] = opened;
    if (first === undefined) return;
    const states = await Promise.all(
      spaces.map((space) => first.of('default').spaceState(space, patience())),
    );
    expect(states.map(({ records }) => records)).toEqual(spaces.map(() => 1));
  }, 120_000);

  test('a plan holds for all of them together, and the chain of events has no break', async () => {
    const opened = await nodes(2);
    const [whole] = opened;
    if (whole === undefined) return;
    await addTenant(whole, 'acme', { keys: 3 });
    const tries = Array.from({ length: 12 }, (_, at) => ({
      keyId: `k${at}`,
      name: 'n',
      hash: 'h',
      scopes: [],
      createdAt: at,
    }));
    const outcomes = await Promise.all(
      tries.map((key, at) => addKeyTo((opened[at % 2] ?? whole).of('acme'), key)),
    );
    expect(outcomes.filter((one) => one === 'done')).toHaveLength(3);
    expect(outcomes.filter((one) => one === 'limit')).toHaveLength(9);
    const events = await whole.of('acme').listAudit({ limit: 99, after: undefined });
    expect(events.map(({ number }) => number)).toEqual([3, 2, 1]);
    expect(findBreak('acme', events.toReversed())).toBe(undefined);
  }, 120_000);

  test('receipts that two of them store again count once', async () => {
    const opened = await nodes(2);
    const rows = Array.from({ length: 20 }, (_, at) =>
      rowOfReceipt({ tenant: 'acme', seq: at + 1 }),
    );
    await Promise.all(
      opened.flatMap((store) => [rows, rows.toReversed()].map((some) => store.storeReceipts(some))),
    );
    const [whole] = opened;
    const asked = { from: '2020-01-01', to: '2030-01-01', groups: ['day'], limit: 9 } as const;
    const [sum] = (await whole?.of('acme').listUsage(asked)) ?? [];
    expect(sum?.requests).toBe(rows.length);
  }, 120_000);

  test('a purge that several go on with erases each record once, and no capture slips through', async () => {
    const opened = await nodes(2);
    const texts = Array.from({ length: 300 }, (_, at) => `record ${at}`);
    const objects = texts.map((text) => objectOf(text));
    const [one, other] = opened.map((store) => store.of('default'));
    if (one === undefined || other === undefined) return;
    const batch = { space: SPACE, ifGeneration: undefined, objects, now: 5 };
    const { state } = await one.capture(batch, patience());
    const purgeId = newPurgeId();
    const scope = { digests: objects.map(({ digest }) => digest) };
    const order = { purgeId, space: SPACE, scope, isDryRun: false, requestedBy: 'k', now: 6 };
    await one.beginPurge(order);
    // The order may be given again: its answer may have been lost.
    expect(await other.beginPurge(order)).toMatchObject({
      state: 'tombstoned',
      counts: { records: 300 },
    });
    const late = { ...batch, ifGeneration: state.generation };
    const goOn = async (store: typeof one): Promise<void> => {
      while (!(await store.continuePurge(purgeId, 7)));
    };
    const [stale] = await Promise.all([other.capture(late, patience()), goOn(one), goOn(other)]);
    expect(stale.results).toBe(undefined);
    expect(await other.spaceState(SPACE, patience())).toMatchObject({
      records: 0,
      commit_seq: 300,
    });
    expect((await other.capture(batch, patience())).results).toEqual(objects.map(() => 'purged'));
    expect(await other.listSources(itemsOf(), patience())).toEqual([]);
  }, 120_000);
});
