import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { GitProjects } from '../../src/adapters/projects/git-projects.ts';
import { folderSpace } from '../../src/core/request/space.ts';
import { SpaceNames } from '../../src/core/request/space-names.ts';
import { runHere, tempFolder } from '../support/cli.ts';
import { plantSecrets } from '../support/planted-secrets.ts';

// Processes with a database each, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const transcripts = join(import.meta.dirname, '..', 'recordings', 'transcripts');

function newHome() {
  const home = tempFolder();
  const data = join(home, 'data');
  const svc = async (args: readonly string[], input = '') => {
    const result = await runHere(['memory', ...args], {
      home,
      input,
      env: { SVC_DATA_HOME: data },
    });
    const json = (): unknown => JSON.parse(result.stdout);
    return { ...result, json };
  };
  return { home, data, svc };
}

const shortName = (space: string): string => new SpaceNames([]).of(space);
const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

test('a statement is remembered for this folder, or for every project, and can be moved', async () => {
  const { home, svc } = newHome();
  const here = await svc(['add', 'The staging port is 6432.']);
  expect(here.stderr).toContain(`Stored in ${shortName(folderSpace(home))}.`);
  const ref = here.stdout.trim();
  expect(ref).toMatch(/^m_[a-z2-7]{16}$/);
  const all = await svc(['add', '--space', 'global', '--json', 'I write', 'dates as ISO 8601.']);
  expect(all.json()).toMatchObject({ space: 'global', state: 'stored' });
  expect((await svc(['add', 'The staging port is 6432.'])).stderr).toContain('has it already');
  expect((await svc(['move', ref, '--to', 'global'])).stderr).toContain('Moved to global: 1.');
  const kept = (await svc(['list', '--json'])).json() as { space: string }[];
  expect(kept.map(({ space }) => space)).toEqual(['global', 'global']);
  // It was moved away: history must not bring it back.
  expect((await svc(['add', 'The staging port is 6432.'])).code).toBe(1);
  expect((await svc(['move', 'm_none', '--to', 'global'])).code).toBe(1);
});

test('a person reads and types the name of a project, and its hash only where two have one name', async () => {
  const { svc } = newHome();
  const [shop, other] = ['project/shop-0123456789', 'project/shop-9876543210'];
  await svc(['add', '--space', shop, 'The staging port is 6432.']);
  await svc(['add', '--space', 'shop', 'Deploys run on Tuesdays.']);
  const held = (await svc(['list', '--space', 'shop', '--json'])).json() as { space: string }[];
  expect(held.map(({ space }) => space)).toEqual([shop, shop]);
  const texts = [['list'], ['search', 'staging'], ['spaces']].map(async (args) => svc(args));
  for (const { stdout } of await Promise.all(texts)) {
    expect(stdout).toMatch(/\bshop\b/);
    expect(stdout).not.toContain('0123456789');
  }
  expect((await svc(['forget', '--space', 'cart', '--yes'])).code).toBe(1);
  // A second project of that name: both keep their hashes, and the short name says too little.
  await svc(['add', '--space', other, 'The till prints in A5.']);
  expect((await svc(['spaces'])).stdout).toMatch(new RegExp(`${shop} [^]*${other} `));
  expect((await svc(['list'])).stdout).toContain(other);
  const unclear = await svc(['list', '--space', 'shop']);
  expect(unclear.code).toBe(2);
  expect(unclear.stderr).toContain(`Several projects are called shop: ${shop}, ${other}.`);
  expect((await svc(['spaces', 'merge', other, shop])).stderr).toContain('Moved to');
  expect((await svc(['spaces', 'rename', 'shop', 'team/till'])).stderr).toContain(
    'Moved to team/till: 3.',
  );
});

test('a text that several projects have is forgotten in this one, and the others are named', async () => {
  const { home, svc } = newHome();
  const here = shortName(folderSpace(home));
  const text = 'The staging port is 6432.';
  const { stdout } = await svc(['add', text]);
  const ref = stdout.trim();
  await svc(['add', '--space', 'project/other', text]);
  const spaces = async () =>
    ((await svc(['list', '--json'])).json() as { space: string }[]).map(({ space }) => space);
  const unasked = await svc(['forget', ref]);
  expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining('--yes')]);
  const done = await svc(['forget', ref, '--yes']);
  expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('Forgotten: 1.')]);
  expect(done.stderr).toContain('project/other also has this text');
  expect(done.stderr).toContain(`svc memory forget ${ref} --space project/other`);
  expect(done.stderr).toContain(here);
  expect(await spaces()).toEqual(['project/other']);
  // Where no project is meant, the person says which.
  await svc(['add', '--space', 'project/third', text]);
  const several = await svc(['forget', ref, '--yes']);
  expect([several.code, several.stderr]).toEqual([2, expect.stringContaining('--space NAME')]);
  expect(several.stderr).toContain('project/other, project/third');
  expect((await svc(['forget', ref, '--space', 'project/third', '--yes'])).code).toBe(0);
  // The only space that has it is meant, wherever the command runs.
  expect((await svc(['forget', ref, '--yes'])).code).toBe(0);
  expect(await spaces()).toEqual([]);
});

test('each of several references is forgotten in its own project, and a wrong one is named', async () => {
  const { svc } = newHome();
  const add = async (text: string, ...space: readonly string[]) =>
    (await svc(['add', ...space, text])).stdout.trim();
  const here = await add('The staging port is 6432.');
  const there = await add('The till prints in A5.', '--space', 'project/other');
  const wrong = `m_${'z'.repeat(16)}`;
  const moved = await svc(['move', there, wrong, '--to', 'project/third']);
  expect([moved.code, moved.stderr]).toEqual([1, expect.stringContaining('Moved to')]);
  expect(moved.stderr).toContain(`No memory has the reference ${wrong}.`);
  const done = await svc(['forget', here, there, wrong, '--yes']);
  expect([done.code, done.stderr]).toEqual([1, expect.stringContaining('Forgotten: 2.')]);
  expect(done.stderr).toContain(`No memory has the reference ${wrong}.`);
  expect(done.stderr).not.toContain('also has');
  expect((await svc(['list', '--json'])).json()).toEqual([]);
  // The list of rules shows other ids.
  for (const command of [['get'], ['forget', '--yes']]) {
    const { code, stderr } = await svc([...command, 'r_abcdefgh']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('It is the id of a rule.')]);
  }
  // A space that does not have it is no reason to say that it is forgotten.
  const kept = await add('The till has two drawers.');
  expect(await svc(['forget', kept, '--space', 'project/other', '--yes'])).toMatchObject({
    code: 1,
  });
});

test('what says nothing, or names no space, is refused with what to do', async () => {
  const { svc } = newHome();
  expect(await svc(['add', 'ok thanks'])).toMatchObject({ code: 2 });
  expect(await svc(['add', '--space', 'No Space', 'The port is 6432.'])).toMatchObject({ code: 2 });
  expect(await svc(['import', '--from', 'nobody'])).toMatchObject({ code: 2 });
  expect(await svc(['import', 'x.jsonl', '--from', 'codex'])).toMatchObject({ code: 2 });
  expect((await svc(['import', '/nowhere/x.jsonl'])).stderr).toContain('ENOENT');
});

test('an export brings the memories to another machine, but for what was forgotten there', async () => {
  const here = newHome();
  for (const text of ['We deploy on Tuesdays.', 'Marta owns billing.', 'The port is 6432.']) {
    await here.svc(['add', '--space', 'team/one', text]);
  }
  await here.svc(['add', '--space', 'other', 'This stays where it is.']);
  const exported = await here.svc(['export', '--space', 'team/one']);
  expect(lines(exported.stdout)).toHaveLength(3);
  expect(exported.stderr).toContain('Exported: 3.');

  const there = newHome();
  const own = await there.svc(['add', '--space', 'team/one', 'Marta owns billing.']);
  await there.svc(['forget', own.stdout.trim(), '--yes']);
  const file = join(there.home, 'memories.jsonl');
  writeFileSync(file, exported.stdout);
  const dry = await there.svc(['import', file, '--dry-run', '--json']);
  expect(dry.json()).toMatchObject({ dryRun: true, records: 3, stored: 0 });
  const first = await there.svc(['import', file, '--json']);
  expect(first.json()).toMatchObject({ records: 3, stored: 2, forgotten: 1, wrong: 0 });
  const again = await there.svc(['import', '-', '--json'], exported.stdout);
  expect(again.json()).toMatchObject({ stored: 0, duplicate: 2, forgotten: 1 });
  const back = await there.svc(['export']);
  expect(lines(exported.stdout)).toEqual(expect.arrayContaining(lines(back.stdout)));
});

test('lines that are no memories are named, and the others are imported', async () => {
  const { svc } = newHome();
  const input = '{"text":"The port is 6432."}\nCANARY\n{"text":"We deploy on Tuesdays."}\n';
  const result = await svc(['import', '--space', 'global'], input);
  expect(result.code).toBe(1);
  expect(result.stderr).toContain('line 2: it is not a JSON object');
  expect(result.stderr).not.toContain('CANARY');
  expect((await svc(['list', '--space', 'global', '--json'])).json()).toHaveLength(2);
});

function withTranscripts(home: string): void {
  const project = join(home, '.claude', 'projects', '-home-user-project');
  cpSync(join(transcripts, 'claude-code-2.1.329'), project, { recursive: true });
  const day = join(home, '.codex', 'sessions', '2026', '11', '20');
  cpSync(join(transcripts, 'codex-0.169.0'), day, { recursive: true });
}

test('transcripts are counted first and written on --yes, and only once', async () => {
  const { home, data, svc } = newHome();
  withTranscripts(home);
  const dry = await svc(['import', '--from', 'claude-code']);
  expect(dry.stderr).toContain('Nothing was written. To import them, add --yes');
  expect(dry.stdout).toContain(shortName(folderSpace('/home/user/project')));
  expect(existsSync(data)).toBe(false);
  const written = await svc(['import', '--from', 'claude-code', '--yes', '--json']);
  const { stored, sessions } = written.json() as { stored: number; sessions: number };
  expect(sessions).toBe(1);
  expect(stored).toBeGreaterThanOrEqual(3);
  expect((await svc(['import', '--from', 'claude-code', '--yes', '--json'])).json()).toMatchObject({
    stored: 0,
    duplicate: stored,
  });
  const codex = await svc(['import', '--from', 'codex', '--yes', '--json', '--space', 'global']);
  expect(codex.json()).toMatchObject({ stored: 4, spaces: { global: 4 } });
  expect((await svc(['search', 'staging database port'])).stdout).toContain('6432');
  expect((await newHome().svc(['import', '--from', 'codex'])).stderr).toContain(
    'nothing to import',
  );
});

test('a session is imported into the project of its folder, and under the path where that is gone', async () => {
  const { home, data, svc } = newHome();
  const root = realpathSync(home);
  const shop = join(root, 'shop');
  mkdirSync(join(shop, 'api'), { recursive: true });
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b.c'];
  execFileSync('git', ['init', '-q'], { cwd: shop });
  execFileSync('git', [...who, 'commit', '-q', '--allow-empty', '-m', 'x'], { cwd: shop });
  const gone = join(root, 'gone');
  const sessions = join(home, '.claude', 'projects', '-p');
  mkdirSync(sessions, { recursive: true });
  const said = {
    [join(shop, 'api')]: 'The walrus gateway is on 6431.',
    [gone]: 'Otters use 7001.',
  };
  for (const [at, [cwd, content]] of Object.entries(said).entries()) {
    const line = { type: 'user', sessionId: `s${at}`, cwd, message: { role: 'user', content } };
    writeFileSync(join(sessions, `${at}.jsonl`), JSON.stringify(line));
  }
  const found = async (...words: string[]) => {
    const { json } = await svc(['import', '--from', 'claude-code', '--json', ...words]);
    return (json() as { readonly spaces: unknown }).spaces;
  };
  const expected = { [folderSpace(shop)]: 1, [folderSpace(gone)]: 1 };
  expect(await found()).toEqual(expected);
  // A count alone records nothing, not even which projects there are.
  expect(existsSync(data)).toBe(false);
  expect(await found('--yes')).toEqual(expected);
  // A live client that works in the repository asks there.
  expect((await new GitProjects(data).find(shop)).space).toBe(folderSpace(shop));
  expect(await found('--yes', '--space', 'global')).toEqual({ global: 2 });
});

test('R26: no secret of a transcript is in the bytes of the store', async () => {
  const { home, data, svc } = newHome();
  const secrets = plantSecrets(3);
  const project = join(home, '.claude', 'projects', '-p');
  mkdirSync(project, { recursive: true });
  const said = secrets.map(({ line }) =>
    JSON.stringify({
      type: 'user',
      cwd: '/p',
      message: { role: 'user', content: `Note: ${line}` },
    }),
  );
  writeFileSync(join(project, 's.jsonl'), said.join('\n'));
  const { json } = await svc(['import', '--from', 'claude-code', '--yes', '--json']);
  expect(json()).toMatchObject({ sessions: 1 });
  const files = readdirSync(data).map((name) => readFileSync(join(data, name)));
  const leaked = secrets.filter(({ secret }) => files.some((file) => file.includes(secret)));
  expect(leaked.map(({ name }) => name)).toEqual([]);
});
