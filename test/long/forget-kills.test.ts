import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { buildChild } from '../support/build-child.ts';
import { blockEntry, foundBlock } from '../support/ledger-entries.ts';
import { outputRecordOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** SVC_FORGET_KILLS: how many kills; SVC_FORGET_SEED: where they begin. */
const KILLS = Number(process.env['SVC_FORGET_KILLS'] ?? 5);
const SEED = Number(process.env['SVC_FORGET_SEED'] ?? 1);
const WORD = 'zebrafishlantern';
const MEMORIES = 1500;

let child: string;

beforeAll(async () => {
  child = await buildChild('forget-child');
}, 60_000);

afterAll(() => rmSync(dirname(child), { recursive: true, force: true }));

test('R26: a forget that is killed at any moment, and done again, leaves no trace of the words', async () => {
  const seeded = tempFolder();
  const block = await fill(seeded);
  const whole = performance.now();
  const first = copyOf(seeded);
  await forgetIn(first);
  const forgetMs = performance.now() - whole;
  expect(holdersOf(first)).toEqual([]);
  for (let kill = 0; kill < KILLS; kill += 1) {
    const folder = copyOf(seeded);
    const killAfterMs = fractionOf(SEED + kill) * forgetMs;
    // oxlint-disable-next-line no-await-in-loop
    await forgetIn(folder, killAfterMs);
    const next = openEmbeddedStore({ folder, report: () => undefined });
    // The command said nothing, so the person gives it again.
    // oxlint-disable-next-line no-await-in-loop
    await next.memory.forget({ space: 'tide' }, AbortSignal.timeout(30_000));
    // oxlint-disable-next-line no-await-in-loop
    expect(await next.memory.list({ limit: 1 }, AbortSignal.timeout(30_000))).toEqual([]);
    // oxlint-disable-next-line no-await-in-loop
    expect([killAfterMs, await foundBlock(next.ledger, block)]).toEqual([killAfterMs, '']);
    // oxlint-disable-next-line no-await-in-loop
    await next.close();
    expect([killAfterMs, holdersOf(folder)]).toEqual([killAfterMs, []]);
  }
});

async function fill(folder: string): Promise<string> {
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const records = Array.from({ length: MEMORIES }, (_, at) =>
    recordOf(`Berth ${at} has the ${WORD}.`, { space: 'tide', exchange: at }),
  );
  const output = outputRecordOf(`The output of the ${WORD}.`, { space: 'tide' });
  await store.memory.capture([output, ...records], AbortSignal.timeout(60_000));
  store.memory.keepFiles('tide', [output.digest]);
  const { text: block } = writeRecallBlock(records.slice(0, 1), 512);
  expect(block).toContain(WORD);
  const quoted = records
    .slice(0, 1)
    .map(({ digest, space }) => ({ ref: referenceOf(digest), space }));
  await store.ledger.record([blockEntry('quoting', { space: 'tide', block, quoted })]);
  await store.close();
  return 'quoting';
}

function copyOf(folder: string): string {
  const copy = join(tempFolder(), 'data');
  cpSync(folder, copy, { recursive: true });
  return copy;
}

async function forgetIn(folder: string, killAfterMs?: number): Promise<void> {
  const running = spawn(process.execPath, [child, folder, 'tide'], { stdio: 'ignore' });
  const timer =
    killAfterMs === undefined ? undefined : setTimeout(() => running.kill('SIGKILL'), killAfterMs);
  await once(running, 'close');
  clearTimeout(timer);
}

function holdersOf(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = files.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  return paths.filter((path) => readFileSync(path).includes(WORD));
}

/** From 0 to 1, the same for the same number. */
function fractionOf(number: number): number {
  return (Math.imul(number, 2_654_435_761) >>> 0) / 2 ** 32;
}
