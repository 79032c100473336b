import { spawn } from 'node:child_process';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { foundBlocks } from '../support/ledger-entries.ts';
import { buildChild } from '../support/build-child.ts';
import { tempFolder } from '../support/temp-folder.ts';

let child: string;

beforeAll(async () => {
  child = await buildChild('store-child');
}, 60_000);

afterAll(() => rmSync(dirname(child), { recursive: true, force: true }));

/** What the process noted as safe before it was killed, `killAfterMs` after its first note. */
async function keepUntilKilled(
  folder: string,
  run: string,
  killAfterMs: number,
): Promise<string[]> {
  const notes = join(tempFolder(), 'notes');
  writeFileSync(notes, '');
  const running = spawn(process.execPath, [child, folder, run, notes], { stdio: 'inherit' });
  const gone = new Promise((resolve) => running.once('close', resolve));
  while (statSync(notes).size === 0 && running.exitCode === null) {
    // oxlint-disable-next-line no-await-in-loop
    await wait(5);
  }
  await wait(killAfterMs);
  running.kill('SIGKILL');
  await gone;
  expect(running.signalCode).toBe('SIGKILL');
  return readFileSync(notes, 'utf8').split('\n').slice(0, -1);
}

test('R27: a kill at any moment loses nothing that was kept, and stores nothing twice', async () => {
  const folder = tempFolder();
  const safe: string[] = [];
  for (const [run, killAfterMs] of [1, 40, 150, 400].entries()) {
    // oxlint-disable-next-line no-await-in-loop
    safe.push(...(await keepUntilKilled(folder, `run${run}`, killAfterMs)));
  }
  const store = openEmbeddedStore({ folder, report: () => undefined });
  await store.outbox.flush(30_000);
  expect(store.outbox.waiting).toBe(0);

  const texts: string[] = [];
  for (let offset = 0; ; offset += 1000) {
    // oxlint-disable-next-line no-await-in-loop
    const page = await store.memory.list({ limit: 1000, offset }, AbortSignal.timeout(30_000));
    texts.push(...page.map(({ text }) => text));
    if (page.length < 1000) break;
  }
  expect(new Set(texts).size).toBe(texts.length);
  const stored = new Set(texts);
  expect(safe.filter((name) => !stored.has(`Fact ${name} about the weather.`))).toEqual([]);
  const blocks = await foundBlocks(store.ledger, safe);
  expect(safe.filter((name, at) => blocks[at] !== name)).toEqual([]);
  await store.close();
}, 60_000);
