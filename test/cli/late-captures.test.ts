import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { STORE_TARGET } from '../../src/adapters/state/outbox.ts';
import { openState } from '../../src/adapters/state/state.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { lateCaptures } from '../../src/cli/proxy/late-captures.ts';
import type { MemoryRecord } from '../../src/ports/memory.ts';
import { runHere } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const KEPT_AT = 1_700_000_000_000;
const MINUTE_MS = 60_000;

/** An outbox whose memory does not answer. */
function keepIn(folder: string, texts: readonly string[], name = STORE_TARGET): void {
  const target = { capture: () => new Promise<never>(() => {}) };
  const state = openState({ folder, report: () => undefined });
  const outbox = state.outboxFor(name, target);
  onTestFinished(async () => {
    outbox.close();
    await state.close();
  });
  const records = texts.map((text, at) => ({ ...recordOf(text), at: KEPT_AT + at }));
  expect(outbox.keep(records)).toBe(true);
}

test('captures that wait for longer than two calls take are told with their number, size and age', () => {
  const folder = tempFolder();
  keepIn(folder, ['We deploy on Tuesdays.', 'x'.repeat(5_000)]);
  keepIn(folder, ['The port is 5432.'], 'hosted_outbox_0123456789abcdef');
  const told = (ageMs: number) => lateCaptures(folder, { now: KEPT_AT + ageMs, isRunning: true });
  expect(told(MINUTE_MS)).toEqual([]);
  const late = told(125 * MINUTE_MS)
    .map(({ found }) => found)
    .toSorted();
  expect(late).toEqual([
    '1 capture (17 bytes) not yet stored in the memory service; the oldest has waited 2 hours',
    '2 captures (5 kB) not yet stored in the memory on this machine; the oldest has waited 2 hours',
  ]);
  for (const { fix } of told(125 * MINUTE_MS))
    expect(fix).toMatch(/^Nothing is lost\..*svc doctor/);
});

test('where no proxy runs, what waits is told at once, and the command that delivers it', () => {
  const folder = tempFolder();
  keepIn(folder, ['We deploy on Tuesdays.']);
  const [late] = lateCaptures(folder, { now: KEPT_AT, isRunning: false });
  expect(late?.fix).toContain('svc start');
});

test('nothing waits in an empty folder, and in none', () => {
  const folder = tempFolder();
  const facts = { now: KEPT_AT, isRunning: false };
  expect(lateCaptures(join(folder, 'none'), facts)).toEqual([]);
  expect(lateCaptures(folder, facts)).toEqual([]);
});

test('svc status and svc doctor say so, without a word of what waits', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const env = { SVC_DATA_HOME: join(home, 'data') };
  keepIn(env.SVC_DATA_HOME, ['The walrus deploys on Tuesdays.']);
  for (const command of [['status'], ['doctor', '--offline']]) {
    // oxlint-disable-next-line no-await-in-loop -- Both look at the same folder.
    const { stdout, stderr } = await runHere(command, { home, env });
    const said = `${stdout}${stderr}`;
    expect(said).toMatch(/1 capture \(31 bytes\) not yet stored in the memory on this machine/);
    expect(said).toContain('svc start');
    expect(said).not.toContain('walrus');
  }
});

/** The outbox of a proxy that runs, whose store takes `ms` for a capture, and one capture in it. */
function keepSlowly(folder: string, text: string, ms: number): void {
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const target = {
    capture: async (records: readonly MemoryRecord[], signal: AbortSignal) => {
      await sleep(ms);
      return store.memory.capture(records, signal);
    },
  };
  const outbox = store.state.outboxFor(STORE_TARGET, target);
  onTestFinished(async () => {
    outbox.close();
    await store.close();
  });
  expect(outbox.keep([recordOf(text)])).toBe(true);
}

test('what an answer left in the outbox is listed and found, also where the store is slow', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const env = { SVC_DATA_HOME: join(home, 'data') };
  keepSlowly(env.SVC_DATA_HOME, 'The walrus deploys on Tuesdays.', 1_500);
  expect((await runHere(['memory', 'search', 'walrus'], { home, env })).stdout).toContain('walrus');
  keepSlowly(env.SVC_DATA_HOME, 'The otter deploys on Fridays.', 1_500);
  expect((await runHere(['memory', 'list'], { home, env })).stdout).toContain('otter');
});

test('a list that waited in vain says what is still on its way', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const env = { SVC_DATA_HOME: join(home, 'data') };
  // A command delivers what waits for the memory on this machine; a service is the proxy's.
  keepIn(env.SVC_DATA_HOME, ['The walrus deploys on Tuesdays.'], 'hosted_outbox_0123456789abcdef');
  const { code, stdout, stderr } = await runHere(['memory', 'list', '--json'], { home, env });
  expect([code, JSON.parse(stdout)]).toEqual([0, []]);
  expect(stderr).toMatch(/1 capture \(31 bytes\) not yet stored in the memory .*See: svc status/);
});
