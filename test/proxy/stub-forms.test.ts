import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { openState } from '../../src/adapters/state/state.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { openProxyStage } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

/** What release 0.1.2 left behind after 21 rounds of a session: its store, and its last request. */
const RECORDED = join(import.meta.dirname, '../recordings/store-0.1.2');
const ROUNDS = 21;

function roundsOf(count: number): Round[] {
  return Array.from({ length: count }, (_, at): Round => {
    const args = { command: `step ${at}` };
    return { id: `call_${at}`, tool: 'Bash', args, output: longOutput(`r${at}`, 900) };
  });
}

function recorded(name: string): Buffer {
  return gunzipSync(readFileSync(join(RECORDED, name)));
}

interface EarlierRow {
  readonly key: string;
  readonly block: string;
  readonly form: string;
  readonly drops_earlier: number;
  readonly at: number;
}

async function upgradedFolder(): Promise<string> {
  const folder = tempFolder();
  const path = join(folder, 'memory.db');
  writeFileSync(path, recorded('memory.db.gz'), { mode: 0o600 });
  // The recording grows old, and the store forgets old outputs.
  const connection = loadDriver().open(path);
  connection.prepare('UPDATE outputs SET used = ?').run(Date.now());
  // Its ledger was in the same file.
  const rows = connection.prepare('SELECT * FROM ledger').all();
  connection.close();
  const state = openState({ folder, report: () => undefined });
  state.writer.put((to) => {
    for (const row of rows) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of that table.
      const { key, block, form, drops_earlier: drops, at } = row as EarlierRow;
      const value = JSON.stringify({ block, form, dropsEarlier: drops === 1, at });
      to.run('INSERT INTO ledger (key, value) VALUES (?, ?)', key, value);
    }
  });
  await state.close();
  return folder;
}

function stubsIn(body: string): string[] {
  return [...body.matchAll(/\[svc left out this [^\]]+\]/g)].map(([stub]) => stub);
}

test('law 6: a conversation that release 0.1.2 shortened is forwarded byte for byte as it was', async () => {
  const stage = await openProxyStage({ folder: await upgradedFolder() });
  onTestFinished(() => stage.stop());
  const send = (count: number) =>
    stage.send('anthropic_messages', sessionBody('anthropic_messages', roundsOf(count)));
  await send(ROUNDS);
  const before = recorded('forwarded.json.gz').toString();
  expect(stage.forwarded()).toBe(before);
  // What leaves later is written in the new words, and the old stubs keep theirs.
  const old = stubsIn(before);
  for (let count = ROUNDS + 1; count <= 60; count += 1) {
    // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
    await send(count);
    // oxlint-disable-next-line no-await-in-loop
    await stage.settled();
    if (stubsIn(stage.forwarded()).length > old.length) break;
  }
  const stubs = stubsIn(stage.forwarded());
  expect(stubs.length).toBeGreaterThan(old.length);
  expect(stubs.slice(0, old.length)).toEqual(old);
  expect(stubs.at(-1)).toMatch(/90 lines, 3k chars, /);
});
