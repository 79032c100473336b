import { mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { CodeFiles } from '../../src/adapters/projects/code-files.ts';
import { changeRegistry } from '../../src/adapters/projects/registry.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { openStoreForCli } from '../../src/cli/compose-store.ts';
import { listStale, showMemory } from '../../src/cli/memory/memory-code.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { runHere, tempFolder } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { recordOf } from '../support/records.ts';
import { screen } from '../support/screen.ts';

/** `svc memory get --origin` and `svc memory list --stale`, on a real store and real files. */

vi.setConfig({ testTimeout: 60_000 });

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const COMMIT = '0123456789abcdef0123456789abcdef01234567';
const SPACE = 'project/shop-0123456789';
const PORT = 'The walrus pooler listens on port 6543 because pgbouncer owns the other one.';

async function stage() {
  const home = realpathSync(tempFolder());
  const root = join(home, 'a folder', 'shop');
  mkdirSync(join(root, 'src'), { recursive: true });
  const env = { SVC_DATA_HOME: join(home, 'data'), HOME: home };
  const store = openEmbeddedStore({ folder: env.SVC_DATA_HOME, report: () => undefined });
  onTestFinished(() => store.close());
  const write = (path: string, text: string): void => writeFileSync(join(root, path), text);
  let exchange = 0;
  const learn = async (text: string, names: readonly string[], space = SPACE): Promise<string> => {
    const place = { space, exchange, conversation: 'session-7', branch: 'fix/pool' };
    const at = Date.UTC(2026, 4, 1 + exchange);
    exchange += 1;
    const asked = recordOf(`Question ${exchange}?`, { ...place, at });
    const answered = recordOf(text, { ...place, at, role: 'assistant' });
    await store.memory.capture([asked, answered], patience());
    const files = (await new CodeFiles().look({ folder: root, root }, names))?.files ?? [];
    const digests = [answered.digest, asked.digest];
    await store.provenance.keep([{ space, digests, root, commit: COMMIT, files }]);
    return referenceOf(answered.digest);
  };
  const svc = (...args: readonly string[]) => runHere(['memory', ...args], { home, env });
  return { home, root, env, store, write, learn, svc };
}

test('show tells session, client, day, project, branch, commit, files, and that it holds', async () => {
  const { learn, write, svc, root } = await stage();
  write('src/pool.ts', '6543');
  const ref = await learn(PORT, ['src/pool.ts']);
  const { code, stdout, stderr } = await svc('get', ref.slice(0, 7), '--origin');
  expect([code, stderr]).toEqual([0, '']);
  for (const part of [
    ref,
    PORT,
    '2026-05-01',
    'assistant',
    'session-7',
    'test-client',
    'shop',
    'fix/pool',
    COMMIT,
    root,
    'src/pool.ts\n',
    'yes: 1 file unchanged since then',
  ]) {
    expect(stdout).toContain(part);
  }
  const json: unknown = JSON.parse((await svc('get', ref, '--origin', '--json')).stdout);
  expect(json).toMatchObject({
    ref,
    text: PORT,
    branch: 'fix/pool',
    commit: COMMIT,
    files: [{ path: 'src/pool.ts', state: 'same' }],
    holds: 'yes',
  });
});

test('show says which files changed or are gone, also for the request of the exchange', async () => {
  const { learn, write, svc, root } = await stage();
  for (const name of ['a.ts', 'b.ts', 'c.ts']) write(`src/${name}`, 'x');
  await learn(PORT, ['src/a.ts', 'src/b.ts', 'src/c.ts']);
  write('src/a.ts', 'other');
  rmSync(join(root, 'src/b.ts'));
  const asked = referenceOf(recordOf('Question 1?').digest);
  const { stdout } = await svc('get', asked, '--origin');
  expect(stdout).toContain('src/a.ts (changed)\n');
  expect(stdout).toContain('src/b.ts (gone)\n');
  expect(stdout).toContain('src/c.ts\n');
  expect(stdout).toContain('not for sure: of 3 files 2 changed since');
});

test('show says unknown where it is, and fails for a reference of nothing', async () => {
  const { learn, write, svc, store, root, home } = await stage();
  const plain = recordOf('A fact of nowhere.');
  await store.memory.capture([plain], patience());
  const { stdout } = await svc('get', referenceOf(plain.digest), '--origin');
  expect(stdout).toContain('unknown: svc knows neither its commit nor its files');
  write('src/pool.ts', '6543');
  const ref = await learn(PORT, ['src/pool.ts']);
  renameSync(root, join(home, 'elsewhere'));
  expect((await svc('get', ref, '--origin')).stdout).toContain('unknown: its files are missing');
  const none = await svc('get', 'm_aaaaaaaaaaaaaaaa', '--origin');
  expect([none.code, none.stdout]).toEqual([1, '']);
  expect(none.stderr).toContain('No memory has this reference.');
});

test('stale lists what the code has outgrown by project, the newest first, and nothing else', async () => {
  const { learn, write, svc } = await stage();
  for (const name of ['a.ts', 'b.ts', 'c.ts']) write(`src/${name}`, 'x');
  const first = await learn('The first.', ['src/a.ts']);
  const kept = await learn('The kept.', ['src/c.ts']);
  const second = await learn('The second.', ['src/a.ts', 'src/b.ts', 'src/c.ts']);
  const other = await learn('The other.', ['src/a.ts'], 'project/other-0123456789');
  expect((await svc('list', '--stale')).stderr).toContain(
    'Memories checked: 4. Their files have not changed.',
  );
  write('src/a.ts', 'y');
  const { stdout, code } = await svc('list', '--stale');
  expect(code).toBe(0);
  expect(stdout).not.toContain(kept);
  expect(stdout.split('\n').filter((line) => !line.startsWith('    '))).toEqual([
    'other',
    expect.stringContaining(other),
    '',
    'shop',
    expect.stringContaining(second),
    expect.stringContaining(first),
    '',
  ]);
  expect(stdout).toContain('src/a.ts (changed)');
  expect(stdout).not.toContain('src/c.ts');
  const json: unknown = JSON.parse(
    (await svc('list', '--stale', '--json', '--space', SPACE)).stdout,
  );
  expect(json).toMatchObject([
    {
      space: SPACE,
      memories: [
        { ref: second, commit: COMMIT, files: [{ path: 'src/a.ts', state: 'changed' }] },
        { ref: first },
      ],
    },
  ]);
  const limited = await svc('list', '--stale', '--limit', '1');
  expect(limited.stdout).not.toContain(first);
  expect(limited.stderr).toContain('And 2 more');
  expect((await svc('list', '--stale', '--limit', '0')).code).toBe(2);
});

test('where the folder is gone, the newest folder of the project is looked at', async () => {
  const { learn, write, svc, root, home, env } = await stage();
  write('src/a.ts', 'x');
  write('src/b.ts', 'x');
  await learn('The first.', ['src/a.ts']);
  await learn('The second.', ['src/b.ts']);
  const elsewhere = join(home, 'elsewhere');
  renameSync(root, elsewhere);
  const unknown = await svc('list', '--stale');
  expect(unknown.stderr).toContain('Unknown: 2.');
  const known = { space: SPACE, identities: [], head: COMMIT, commits: [COMMIT], trees: [] };
  await changeRegistry(env.SVC_DATA_HOME, () => ({
    projects: [{ ...known, folders: [root, elsewhere] }],
    joined: {},
    forwards: {},
    off: [],
  }));
  writeFileSync(join(elsewhere, 'src/a.ts'), 'y');
  // Another working tree may never have had this one.
  rmSync(join(elsewhere, 'src/b.ts'));
  const found = await svc('list', '--stale');
  expect(found.stdout).toContain('The first.');
  expect(found.stdout).not.toContain('The second.');
  expect(found.stderr).toContain('Unknown: 1.');
});

test('both fit on a screen of 60 columns, and break no word', async () => {
  const { learn, write, env } = await stage();
  const name = `src/${'a-long-name-'.repeat(6)}.ts`;
  write(name, 'x');
  const ref = await learn(`${PORT} ${PORT}`, [name]);
  write(name, 'y');
  const { terminal, stdout } = screen(60, { NO_COLOR: '1' });
  const context = { terminal, environment: env, openStore: openStoreForCli };
  await showMemory({ ref }, context);
  await listStale({ args: [], options: {}, context });
  const lines = stripVTControlCharacters(stdout()).split('\n');
  expect(lines.filter((line) => line.length > 60 && /\S\s+\S/.test(line.trim()))).toEqual([]);
  expect(stdout()).toContain(name);
});

test('what is forgotten is in neither, nor in the list of what is stale', async () => {
  const { learn, write, svc } = await stage();
  write('src/a.ts', 'x');
  const ref = await learn(PORT, ['src/a.ts']);
  write('src/a.ts', 'y');
  expect((await svc('list', '--stale')).stdout).toContain(ref);
  expect((await svc('forget', ref, '--yes')).code).toBe(0);
  expect((await svc('list', '--stale')).stdout).toBe('');
  expect((await svc('get', ref, '--origin')).code).toBe(1);
});

test('an export knows nothing of it', async () => {
  const { learn, write, svc, root } = await stage();
  write('src/pool.ts', '6543');
  await learn(PORT, ['src/pool.ts']);
  const { stdout } = await svc('export');
  expect(stdout).toContain(PORT);
  for (const part of [COMMIT, 'pool.ts', root]) expect(stdout).not.toContain(part);
});

test('with a memory service both say what is unknown', async () => {
  const memory = {
    kind: 'hosted',
    baseUrl: 'http://127.0.0.1:9',
    serviceKey: 'svc_k_none',
    allowPrivate: true,
  };
  const home = homeWith({ ...validConfig(), memory });
  const { code, stdout, stderr } = await runHere(['memory', 'list', '--stale', '--json'], { home });
  expect([code, stdout]).toEqual([0, '[]\n']);
  expect(stderr).toContain('a memory service stores neither commits nor files');
});
