import { stripVTControlCharacters } from 'node:util';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { reportChecks } from '../../src/cli/doctor/checks.ts';
import { openStoreForCli } from '../../src/cli/compose-store.ts';
import type { CommandContext } from '../../src/cli/context.ts';
import { listMemories } from '../../src/cli/memory/memory.ts';
import { listSpaces } from '../../src/cli/memory/spaces.ts';
import { recordOf } from '../support/records.ts';
import { screen } from '../support/screen.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A line longer than the screen is broken by the terminal, in the middle of a word. */

const COLUMNS = 60;

function expectToFit(stdout: string): void {
  const lines = stripVTControlCharacters(stdout).split('\n');
  // A word that is longer than the screen cannot be helped.
  const over = lines.filter((line) => line.length > COLUMNS && /\S\s+\S/.test(line.trim()));
  expect(over).toEqual([]);
  expect(stdout).not.toBe('');
}

test('checks of doctor fit, with the level on the first line alone', () => {
  const { terminal, stdout } = screen(COLUMNS, { NO_COLOR: '1' });
  const long = 'each of these words is short, and the whole of them is much too long for one line';
  const checks = [
    { level: 'warning', subject: 'Memory', found: long, fix: `Do this: ${long}` },
    { level: 'ok', subject: 'Node', found: '20.20.2' },
  ] as const;
  reportChecks({ checks, facts: {}, isJson: false }, terminal);
  expectToFit(stdout());
  const lines = stdout().trimEnd().split('\n');
  expect(lines[0]).toMatch(/^warning {2}Memory: each/);
  expect(lines.at(-1)).toBe('ok       Node: 20.20.2');
  for (const line of lines.slice(1, -1)) expect(line).toMatch(/^ {9}\S/);
});

test('memories and spaces fit', async () => {
  const home = tempFolder();
  const environment = { HOME: home, SVC_DATA_HOME: join(home, 'data') };
  const store = openEmbeddedStore({ folder: environment.SVC_DATA_HOME, report: () => undefined });
  onTestFinished(() => store.close());
  const text =
    'The depot of the walrus shop opens at nine, and on Sundays it does not open at all.';
  const record = recordOf(text, { space: 'project/a-name-that-takes-some-forty-characters' });
  await store.memory.capture([record], AbortSignal.timeout(30_000));
  const shown = async (show: (context: CommandContext) => unknown) => {
    const { terminal, stdout } = screen(COLUMNS);
    await show({ terminal, environment, openStore: openStoreForCli });
    expectToFit(stdout());
  };
  await shown((it) => listMemories({ args: [], options: {}, context: it }));
  await shown((it) => listMemories({ args: ['depot'], options: {}, context: it }));
  await shown((it) => listSpaces({ args: [], options: {}, context: it }));
});
