import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { runHere, tempFolder } from '../support/cli.ts';
import { BASE62, pickerOf } from '../support/planted-secrets.ts';

// Processes with a database each, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const USE_PNPM = 'We use pnpm here.';
const GENERATED = 'Never touch generated files.';

/** A person with a home of their own and a working tree of the project. */
function person() {
  const home = tempFolder();
  const project = join(home, 'shop');
  mkdirSync(project);
  execFileSync('git', ['init', '-q'], { cwd: project });
  const svc = (...args: readonly string[]) => runHere(['memory', ...args], { home, cwd: project });
  const file = join(project, '.svc', 'memory.md');
  const rules = async () =>
    (JSON.parse((await svc('rules', '--json')).stdout) as { text: string }[])
      .map(({ text }) => text)
      .toSorted();
  const add = async (text: string) => (await svc('add', text)).stdout.trim();
  return { home, project, svc, file, rules, add };
}

function give(from: { file: string; project: string }, to: { project: string }): void {
  cpSync(join(from.project, '.svc'), join(to.project, '.svc'), { recursive: true });
}

test('rules and a memory travel to a colleague, who accepts them', async () => {
  const [ana, ben] = [person(), person()];
  await ana.add(USE_PNPM);
  const ref = await ana.add('Staging listens on port 6431.');
  const shared = await ana.svc('share');
  expect(shared).toMatchObject({ code: 0 });
  expect((await ana.svc('share', ref)).stdout).toContain('port 6431');
  const text = readFileSync(ana.file, 'utf8');
  expect(text).toContain(`> ${USE_PNPM}`);
  expect((await ana.svc('share')).code).toBe(0);
  expect(readFileSync(ana.file, 'utf8')).toBe(text);

  give(ana, ben);
  const looked = await ben.svc('join');
  expect(looked).toMatchObject({ code: 0, stderr: expect.stringContaining('Nothing was written') });
  expect(await ben.rules()).toEqual([]);
  const unverified = await ben.svc('join', '--yes');
  expect(unverified.stderr).toContain('unverified');
  expect(await ben.rules()).toEqual([]);
  expect((await ben.svc('search', 'staging', 'port')).stdout).toContain('port 6431');
  await ben.svc('join', '--accept');
  expect(await ben.rules()).toEqual([USE_PNPM]);
  // The colleague's own rule joins the file, and the others stay what they were.
  await ben.add(GENERATED);
  await ben.svc('share');
  expect(readFileSync(ben.file, 'utf8')).toContain(GENERATED);
  for (const paragraph of text.trimEnd().split('\n\n')) {
    expect(readFileSync(ben.file, 'utf8')).toContain(paragraph);
  }
});

test('two machines share at once: git reports a conflict, and both sides join and are written in order', async () => {
  const [ana, ben] = [person(), person()];
  const git = (cwd: string, ...args: readonly string[]) =>
    spawnSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.com', ...args], { cwd });
  await ana.svc('share', await ana.add('Staging listens on port 6431.'));
  git(ana.project, 'add', '.');
  git(ana.project, 'commit', '-qm', 'Share');
  git(ben.project, 'pull', '-q', ana.project, 'HEAD');
  await ana.add(USE_PNPM);
  await ben.add(GENERATED);
  for (const { project, svc } of [ana, ben]) {
    await svc('share');
    git(project, 'add', '.');
    git(project, 'commit', '-qm', 'Share more');
  }
  git(ben.project, 'pull', '-q', '--no-rebase', ana.project, 'HEAD');
  expect(readFileSync(ben.file, 'utf8')).toContain('<<<<<<<');
  const joined = await ben.svc('join', '--accept');
  expect(joined).toMatchObject({ code: 0, stderr: expect.stringContaining('both sides') });
  expect(await ben.rules()).toEqual([GENERATED, USE_PNPM]);
  await ben.svc('share');
  const whole = readFileSync(ben.file, 'utf8');
  expect(whole).not.toContain('<<<<<<<');
  for (const text of [USE_PNPM, GENERATED]) expect(whole).toContain(`> ${text}`);
  await ana.svc('join', '--accept');
  give(ben, ana);
  await ana.svc('join', '--accept');
  await ana.svc('share');
  expect(readFileSync(ana.file, 'utf8')).toBe(whole);
});

test('no entry replaces a rule of the person, also with a later date', async () => {
  const [ana, ben] = [person(), person()];
  await ana.add('From now on we use npm here.');
  await ana.svc('share');
  give(ana, ben);
  await ben.add(USE_PNPM);
  const future = readFileSync(ben.file, 'utf8').replace(/\d{4}-\d\d-\d\d/, '2090-01-01');
  writeFileSync(ben.file, future);
  const joined = await ben.svc('join', '--accept');
  expect(joined.stderr).toContain('contradicts a rule of yours');
  expect(await ben.rules()).toEqual([USE_PNPM]);
});

test('what a person forgot or retired stays out, and can be taken out of the file', async () => {
  const [ana, ben] = [person(), person()];
  await ana.add(USE_PNPM);
  await ana.add(GENERATED);
  await ana.svc('share');
  give(ana, ben);
  await ben.svc('join', '--accept');
  const listed = JSON.parse((await ben.svc('rules', '--json')).stdout) as {
    id: string;
    text: string;
    ref: string;
  }[];
  const [generated, pnpm] = [GENERATED, USE_PNPM].map((text) =>
    listed.find((rule) => rule.text === text),
  );
  await ben.svc('rules', '--retire', generated?.id ?? '');
  await ben.svc('forget', pnpm?.ref ?? '', '--yes');
  await ben.svc('join', '--accept');
  expect(await ben.rules()).toEqual([]);
  const again = await ben.svc('share', '--json', '--remove', idIn(ben.file, GENERATED));
  expect(JSON.parse(again.stdout)).toMatchObject({ added: 0, removed: 1, entries: 1 });
  expect(readFileSync(ben.file, 'utf8')).not.toContain(GENERATED);
  // Who joined it before learns that it left the file.
  give(ben, ana);
  await ana.svc('join', '--accept');
  await ben.svc('rules', '--restore', generated?.id ?? '');
  expect((await ben.svc('join', '--accept')).stderr).toContain('no longer in the file');
});

function idIn(file: string, text: string): string {
  const paragraph = readFileSync(file, 'utf8')
    .split('\n\n')
    .find((one) => one.includes(text));
  return /s_[\da-f]{12}/.exec(paragraph ?? '')?.[0] ?? '';
}

test('a secret that a person wrote into the file is masked by the next share', async () => {
  const ana = person();
  await ana.add(USE_PNPM);
  await ana.svc('share');
  const token = `ghp_${pickerOf(7)(BASE62, 36)}`;
  writeFileSync(ana.file, readFileSync(ana.file, 'utf8').replace('pnpm', token));
  const shared = await ana.svc('share');
  expect(shared.stderr).toContain('Secrets masked: 1');
  expect(readFileSync(ana.file, 'utf8')).not.toContain(token);
});

test('a file that svc does not read is named, and nothing of it is lost', async () => {
  const ana = person();
  expect(await ana.svc('join')).toMatchObject({ code: 1 });
  await ana.add(USE_PNPM);
  await ana.svc('share');
  const own = `${readFileSync(ana.file, 'utf8')}\nA note of a person.\n`;
  writeFileSync(ana.file, own);
  const refused = await ana.svc('share');
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('line of origin') });
  expect(readFileSync(ana.file, 'utf8')).toBe(own);
  expect((await ana.svc('join', '--yes')).code).toBe(0);
  rmSync(join(ana.project, '.svc'), { recursive: true });
  mkdirSync(join(ana.home, 'elsewhere'));
  symlinkSync(join(ana.home, 'elsewhere'), join(ana.project, '.svc'));
  expect(await ana.svc('share')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('link'),
  });
  expect(await runHere(['memory', 'share'], { home: ana.home })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('git repository'),
  });
});

test('the rules that hold are written in the form of an agent’s own file', async () => {
  const ana = person();
  const none = await ana.svc('export', '--as', 'claude');
  expect(none).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('No rule') });
  await ana.add('We use npm here.');
  await ana.add('Staging listens on port 6431.');
  await ana.add(GENERATED);
  await ana.add(USE_PNPM);
  for (const form of ['claude', 'agents']) {
    const { stdout } = await ana.svc('export', '--as', form);
    expect(stdout).toBe(`## Rules of this project\n\n- ${GENERATED}\n- ${USE_PNPM}\n`);
  }
  expect(await ana.svc('export', '--as', 'gemini')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('claude or agents'),
  });
});
