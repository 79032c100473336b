import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stateFile } from '../../src/adapters/files/database-file.ts';
import { openState } from '../../src/adapters/state/state.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { buildChild } from '../support/build-child.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { foundBlocks } from '../support/ledger-entries.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** More than the child executes. */
const STATEMENTS_MAX = 400;

let child: string;

beforeAll(async () => {
  child = await buildChild('state-child');
}, 60_000);

afterAll(() => rmSync(dirname(child), { recursive: true, force: true }));

test('R27: a kill at each statement of ledger, outbox and request log takes nothing that was acknowledged', async () => {
  let [next, killed, ended] = [1, 0, 0];
  const work = async (): Promise<void> => {
    while (ended === 0 && next <= STATEMENTS_MAX) {
      const at = next;
      next += 1;
      // oxlint-disable-next-line no-await-in-loop -- Each worker runs one process at a time.
      if (await isKilledAt(at)) killed += 1;
      else ended += 1;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  process.stdout.write(`MEASURED kills at ${killed} statements\n`);
  expect(ended).toBeGreaterThan(0);
  expect(killed).toBeGreaterThan(60);
});

/** False where the process came to its end in front of that statement. */
async function isKilledAt(at: number): Promise<boolean> {
  const folder = join(tempFolder(), 'data');
  const notes = join(tempFolder(), 'notes');
  writeFileSync(notes, '');
  const running = spawn(process.execPath, [child, folder, notes, String(at)], { stdio: 'inherit' });
  const [code, signal]: unknown[] = await once(running, 'close');
  const isKilled = signal === 'SIGKILL';
  expect([at, isKilled ? 0 : code]).toEqual([at, 0]);
  const lines = readFileSync(notes, 'utf8').split('\n').slice(0, -1);
  const said = (how: string): readonly string[] =>
    lines.filter((line) => line.startsWith(`${how} `)).map((line) => line.slice(how.length + 1));
  await expectKept(folder, at, said);
  return isKilled;
}

async function expectKept(
  folder: string,
  at: number,
  said: (how: string) => readonly string[],
): Promise<void> {
  const reports: string[] = [];
  const state = openState({ folder, report: (line) => reports.push(line) });
  const memory = new FakeMemory();
  const outbox = state.outboxFor('store', memory);
  await outbox.flush(30_000);
  const delivered = [...said('delivered'), ...memory.captured.map(({ text }) => text)];
  expect([at, delivered]).toEqual([at, expect.arrayContaining([...said('kept')])]);
  const names = [...said('committed'), ...said('recorded')];
  const wrong = (await foundBlocks(state.ledger, names)).filter((block, index) => {
    const mayBeNew = names[index] === 'c1' && block === 'another';
    return mayBeNew ? false : block !== `block of ${names[index]}`;
  });
  expect([at, wrong]).toEqual([at, []]);
  const [replaced, forgotten] = await foundBlocks(state.ledger, ['c1', 'q']);
  if (said('replaced').length > 0) expect([at, replaced]).toEqual([at, 'another']);
  if (said('forgotten').length > 0) expect([at, forgotten]).toEqual([at, '']);
  expect([at, rowsIn(folder)]).toEqual([at, expect.arrayContaining([...said('logged')])]);
  outbox.close();
  await state.close();
  expect([at, reports]).toEqual([at, []]);
}

function rowsIn(folder: string): readonly unknown[] {
  const connection = loadDriver().open(stateFile(folder));
  const rows = connection.prepare('SELECT id FROM requests').all() as { readonly id: string }[];
  connection.close();
  return rows.map(({ id }) => id);
}
