import { expect, test, vi } from 'vitest';
import { runHere, tempFolder } from '../support/cli.ts';

// Processes with a database each, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

interface Listed {
  readonly id: string;
  readonly text: string;
  readonly state: string;
}

function newHome() {
  const home = tempFolder();
  const svc = (...args: readonly string[]) => runHere(['memory', ...args], { home });
  const rules = async (...args: readonly string[]) =>
    JSON.parse((await svc('rules', '--json', ...args)).stdout) as Listed[];
  const idOf = async (text: string) =>
    (await rules('--all')).find((rule) => rule.text === text)?.id ?? '';
  return { home, svc, rules, idOf };
}

const USE_NPM = 'We use npm here.';
const USE_PNPM = 'No, we use pnpm here.';
const COMMITS = 'Always write commit messages in English.';

test('rules are listed with what became of each, pinned, edited, retired and restored', async () => {
  const { svc, rules, idOf } = newHome();
  const none = await svc('rules');
  expect([none.code, none.stdout]).toEqual([0, '']);
  expect(none.stderr).toContain('No rules.');
  for (const said of [USE_NPM, USE_PNPM, COMMITS]) await svc('add', said);
  expect((await rules()).map(({ text }) => text).toSorted()).toEqual([COMMITS, USE_PNPM]);
  const all = await rules('--all');
  expect(all.find(({ text }) => text === USE_NPM)?.state).toBe('replaced');
  const id = await idOf(COMMITS);
  expect((await rules('--pin', id)).find((rule) => rule.id === id)?.state).toBe('pinned');
  const retired = await svc('rules', '--retire', id);
  expect(retired.stdout).not.toContain(COMMITS);
  expect(retired.stderr).toContain('until its client compacts it');
  // Said again, it stays retired.
  await svc('add', COMMITS);
  expect((await rules()).map(({ text }) => text)).toEqual([USE_PNPM]);
  await svc('rules', '--restore', id);
  expect((await rules()).map(({ text }) => text).toSorted()).toEqual([COMMITS, USE_PNPM]);
  await svc('rules', '--edit', id, 'Always write commit messages in German.');
  expect((await rules()).map(({ text }) => text).toSorted()).toEqual([
    'Always write commit messages in German.',
    USE_PNPM,
  ]);
  const german = await idOf('Always write commit messages in German.');
  await svc('rules', '--edit', german, COMMITS);
  expect((await rules()).map(({ text }) => text).toSorted()).toEqual([COMMITS, USE_PNPM]);
});

test('a retired rule stays retired when its memory is moved', async () => {
  const { svc, rules, idOf } = newHome();
  const ref = (await svc('add', COMMITS)).stdout.trim();
  await svc('rules', '--retire', await idOf(COMMITS));
  await svc('move', ref, '--to', 'team/other');
  const moved = await rules('--all', '--space', 'team/other');
  expect(moved.map(({ text, state }) => [text, state])).toEqual([[COMMITS, 'retired']]);
});

test('the marks of rules go with an export, and a retired rule stays retired wherever two meet', async () => {
  const here = newHome();
  const there = newHome();
  const NAMES = 'Never use single-letter variable names.';
  await here.svc('add', `${COMMITS} ${NAMES}`, '--space', 'team/one');
  await here.svc('rules', '--retire', await here.idOf(COMMITS));
  await here.svc('rules', '--pin', await here.idOf(NAMES));
  const { stdout } = await here.svc('export');
  const statesIn = async (home: typeof here, ...args: readonly string[]) =>
    Object.fromEntries(
      (await home.rules('--all', ...args)).map(({ text, state }) => [text, state]),
    );
  // The other machine has the rule too, as one that its person always wants placed.
  await there.svc('add', COMMITS, '--space', 'team/one');
  await there.svc('rules', '--pin', await there.idOf(COMMITS));
  const imported = await runHere(['memory', 'import', '-'], { home: there.home, input: stdout });
  expect(imported.stderr).toContain('1 new');
  expect(await statesIn(there)).toEqual({ [COMMITS]: 'retired', [NAMES]: 'pinned' });
  // An import of what is known already retires too, and a move keeps what is retired on either side.
  await there.svc('rules', '--restore', await there.idOf(COMMITS));
  await runHere(['memory', 'import', '-'], { home: there.home, input: stdout });
  expect((await statesIn(there))[COMMITS]).toBe('retired');
  const ref = (await there.svc('add', COMMITS, '--space', 'team/other')).stdout.trim();
  const inOther = (await there.rules('--space', 'team/other'))[0]?.id ?? '';
  await there.svc('rules', '--pin', inOther);
  await there.svc('move', ref, '--space', 'team/one', '--to', 'team/other');
  expect((await statesIn(there, '--space', 'team/other'))[COMMITS]).toBe('retired');
});

test('an import takes no mark of another kind', async () => {
  const { home } = newHome();
  const line = { text: COMMITS, space: 'global', rules: { [COMMITS]: 'loved' } };
  const imported = await runHere(['memory', 'import', '-'], { home, input: JSON.stringify(line) });
  expect([imported.code, imported.stderr]).toEqual([
    1,
    expect.stringContaining('line 1: rules must be retired or pinned'),
  ]);
});

test('a wrong call says what is wrong and changes nothing', async () => {
  const { svc, rules, idOf } = newHome();
  await svc('add', USE_PNPM);
  const id = await idOf(USE_PNPM);
  const unknown = await svc('rules', '--retire', 'r_nothing');
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining('r_nothing')]);
  expect((await svc('rules', '--retire', id, '--pin', id)).code).toBe(2);
  expect((await svc('rules', '--edit', id)).code).toBe(2);
  expect((await svc('rules', 'Always use npm.')).code).toBe(2);
  expect((await svc('rules', '--edit', id, 'pnpm is nice')).code).toBe(2);
  expect((await rules()).map(({ text }) => text)).toEqual([USE_PNPM]);
});
