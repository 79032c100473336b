import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { databaseFile } from '../../src/adapters/files/database-file.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import type { AgentFacts, Memory } from '../../src/ports/memory.ts';
import { FACTS, outputRecordOf, questionOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const nonce = new Uint8Array(32);
const FROM = 'project/shop-0123456789';
const TO = 'team/shop';

function openStore() {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  return { ...store, folder };
}

async function moveAll(memory: Memory, from: string, to: string): Promise<void> {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- Batch after batch.
    const moved = await memory.moveSome?.({ from, to }, patience());
    if (moved === undefined || moved.memories + moved.outputs === 0) return;
  }
}

async function textsIn(memory: Memory, space: string): Promise<string[]> {
  const found = await memory.list({ space, limit: 1000 }, patience());
  return found.map(({ text }) => text).toSorted();
}

test('memories and left-out outputs move, are found and proven there, and move back', async () => {
  const store = openStore();
  const { memory } = store;
  const output = outputRecordOf('1 failed, 40 passed\n', { space: FROM });
  const outputs = Array.from({ length: 70 }, (_, at) => outputRecordOf(`o${at}`, { space: FROM }));
  await memory.capture(
    FACTS.map((text, exchange) => recordOf(text, { space: FROM, exchange })),
    patience(),
  );
  await memory.capture([output, ...outputs], patience());
  const held = (space: string) =>
    memory.hold({ space, digests: [output.digest], nonce }, patience());
  const asked = (space: string) => questionOf('Which port has the staging database?', { space });
  expect(await held(FROM)).toHaveLength(1);
  for (const [from, to] of [
    [FROM, TO],
    [TO, FROM],
  ] as const) {
    // oxlint-disable-next-line no-await-in-loop -- One after the other.
    await moveAll(memory, from, to);
    // oxlint-disable-next-line no-await-in-loop
    expect(await textsIn(memory, to)).toEqual(FACTS.toSorted());
    // oxlint-disable-next-line no-await-in-loop
    expect([await textsIn(memory, from), await held(from)]).toEqual([[], []]);
    // oxlint-disable-next-line no-await-in-loop
    expect(await held(to)).toHaveLength(1);
    // oxlint-disable-next-line no-await-in-loop
    const kept = await memory.retrieve({ ref: referenceOf(output.digest) }, patience());
    expect(kept).toMatchObject({ text: output.text, space: to });
    // oxlint-disable-next-line no-await-in-loop
    const { passages } = await memory.recall(asked(to), patience());
    expect(passages[0]?.text).toBe(FACTS[0]);
    // oxlint-disable-next-line no-await-in-loop
    expect(await memory.recall(asked(from), patience())).toEqual({ passages: [] });
  }
  expect(await store.isWhole()).toBe(true);
});

test('what both spaces hold is there once, with its newer date', async () => {
  const { memory } = openStore();
  const said = (space: string, day: number, other = {}) =>
    recordOf('The port is 6431.', { space, at: Date.UTC(2026, 4, day), ...other });
  await memory.capture([said(FROM, 9), said(TO, 3, { source: 'unverified' })], patience());
  await moveAll(memory, FROM, TO);
  const found = await memory.list({ limit: 10 }, patience());
  expect(found).toHaveLength(1);
  expect(found[0]).toMatchObject({ space: TO, at: Date.UTC(2026, 4, 9) });
  expect(found[0]).not.toHaveProperty('source');
});

test('R26: what was forgotten in one of them stays forgotten there, and nothing held is lost', async () => {
  const { memory } = openStore();
  const [first, second] = ['The gateway is on 6431.', 'Otters use 7001.'];
  const of = (text: string, space: string) => recordOf(text, { space });
  await memory.capture([of(first, FROM), of(second, TO), of('Kept.', FROM)], patience());
  await memory.forget({ space: FROM, refs: [referenceOf(of(first, FROM).digest)] }, patience());
  await memory.forget({ space: TO, refs: [referenceOf(of(second, TO).digest)] }, patience());
  await memory.capture([of(second, FROM)], patience());
  await moveAll(memory, FROM, TO);
  expect(await textsIn(memory, TO)).toEqual(['Kept.']);
  expect(await textsIn(memory, FROM)).toEqual([second]);
  expect(await memory.capture([of(first, TO)], patience())).toEqual(['forgotten']);
});

test('the share by which recall speaks moves too, older than what the other space has', async () => {
  const store = openStore();
  const { memory, folder } = store;
  const agent: AgentFacts = { conversation: 'now', branch: '', quietShare: 0, briefTokensMax: 0 };
  for (const space of [FROM, TO]) {
    const facts = FACTS.map((text, exchange) => recordOf(text, { space, exchange }));
    // oxlint-disable-next-line no-await-in-loop
    await memory.capture(facts, patience());
    const asked =
      space === FROM
        ? 'feature flags live in LaunchDarkly under kestrel'
        : 'is the Grafana board of Marta up';
    // oxlint-disable-next-line no-await-in-loop
    await memory.recall(questionOf(asked, { space, agent }), patience());
  }
  await memory.capture([recordOf('one more')], patience());
  await moveAll(memory, FROM, TO);
  await store.close();
  const connection = loadDriver().open(databaseFile(folder));
  const sql =
    'SELECT s.name, g.signal FROM signals g JOIN spaces s ON s.id = g.space ORDER BY number';
  const rows = connection.prepare(sql).all() as { name: string; signal: number }[];
  connection.close();
  expect(rows.map(({ name }) => name)).toEqual([TO, TO]);
  expect(rows[0]?.signal).toBeGreaterThan(rows[1]?.signal ?? Infinity);
});
