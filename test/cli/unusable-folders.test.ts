import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { BIN, runCli, runProgram, tempFolder } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';

// Each starts a real proxy in a process of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

/** Root may write everywhere: where the tests run as root, the commands run as nobody. */
const uid = process.getuid?.() === 0 ? 65_534 : undefined;

/** A home whose folders belong to whoever runs the commands. */
async function homeOfUser(): Promise<{ home: string; data: string; port: number }> {
  const port = await freePort();
  const home = homeWith({ ...validConfig(), proxy: { port } });
  const data = join(home, 'data');
  if (uid !== undefined) own(home, uid);
  return { home, data, port };
}

function own(path: string, user: number): void {
  if (lstatSync(path).isSymbolicLink()) return;
  chownSync(path, user, user);
  if (!lstatSync(path).isDirectory()) return;
  for (const name of readdirSync(path)) own(join(path, name), user);
}

function run(args: readonly string[], { home, data }: { home: string; data: string }) {
  const user = uid === undefined ? {} : { uid };
  return runCli(args, { home, env: { SVC_DATA_HOME: data }, ...user });
}

test('a proxy in the background serves from a data folder that cannot be written, and is found', async () => {
  const place = await homeOfUser();
  mkdirSync(place.data, { mode: 0o700 });
  if (uid !== undefined) own(place.data, uid);
  chmodSync(place.data, 0o500);
  writeFileSync(join(place.data, 'proxy.log'), '', { mode: 0o600 });
  if (uid !== undefined) own(join(place.data, 'proxy.log'), uid);
  const doctor = await run(['doctor', '--offline'], place);
  expect(doctor.stdout).toContain(`you may not write to ${place.data}, so svc stores nothing`);
  const started = await run(['start', '--detach'], place);
  expect([started.code, started.stderr]).toEqual([
    0,
    expect.stringContaining(`svc listens on http://127.0.0.1:${place.port}`),
  ]);
  const stopped = await run(['stop'], place);
  expect(stopped.stderr).toContain('Stopped');
});

test('without a configuration, in a home that cannot be written, the hint is to make it writable', async () => {
  const home = tempFolder();
  if (uid !== undefined) own(home, uid);
  chmodSync(home, 0o500);
  const calls = [['status'], ['connect', 'claude', '--yes'], ['doctor', '--offline']].map((args) =>
    runCli(args, { home, ...(uid === undefined ? {} : { uid }) }),
  );
  for (const { code, stdout, stderr } of await Promise.all(calls)) {
    const said = `${stdout}${stderr}`;
    expect([code, said]).toEqual([1, expect.stringContaining('Make it writable for you')]);
    expect(said.includes('svc setup')).toBe(false);
  }
});

test.each([
  ['is broken', (file: string) => writeFileSync(file, '{', { mode: 0o600 })],
  ['is gone', (file: string) => rmSync(file)],
])('stop finds the proxy by its file when the configuration %s', async (_, damage) => {
  const { home, port } = await homeOfUser();
  const place = { home, env: { SVC_DATA_HOME: join(home, 'data') } };
  const call = (...args: string[]) =>
    runCli(args, { ...place, ...(uid === undefined ? {} : { uid }) });
  expect((await call('start', '--detach')).code).toBe(0);
  expect((await call('status', '--json')).stdout).not.toContain('tokenDigest');
  const file = join(home, '.config/svc/config.json');
  damage(file);
  const stopped = await call('stop');
  expect([stopped.code, stopped.stderr]).toEqual([
    0,
    expect.stringContaining(`Stopped: http://127.0.0.1:${port}`),
  ]);
  expect(stopped.stderr).toContain('config.json');
  // Nothing is left to stop, so the configuration is what is wrong.
  expect((await call('stop')).code).toBe(1);
});

test('status and doctor say that a folder or a link stands in the place of a database', async () => {
  const { home } = await homeOfUser();
  const data = join(home, 'data');
  mkdirSync(data, { mode: 0o700 });
  mkdirSync(join(data, 'memory.db'), { mode: 0o700 });
  symlinkSync(join(home, 'elsewhere.db'), join(data, 'state.db'));
  if (uid !== undefined) own(data, uid);
  const status = await run(['status'], { home, data });
  expect(status.stderr).toContain(`${join(data, 'memory.db')} is a folder, a link or a device.`);
  expect(status.stderr).toContain(`${join(data, 'state.db')} is a folder, a link or a device.`);
  const doctor = await run(['doctor', '--offline'], { home, data });
  expect(doctor.stdout).toContain(`${join(data, 'memory.db')} is a folder, a link or a device.`);
});

test('a data folder that is none is told by its name, with the variable that moves it', async () => {
  const place = await homeOfUser();
  writeFileSync(place.data, 'a file');
  const { code, stderr } = await run(['start', '--detach'], place);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`${place.data} is not a folder.`)]);
  expect(stderr).not.toContain('unexpected');
  const nowhere = { ...place, data: join(place.data, 'in', 'a', 'file') };
  const refused = await run(['start', '--detach'], nowhere);
  expect(refused.stderr).not.toContain('unexpected');
  expect(refused.stderr).toContain(dirname(nowhere.data));
});

/** A mount of its own, which the rest of the machine does not see; for root alone. */
const [unshare, ...ownMounts] = ['unshare', '-m'] as const;
const canMount = spawnSync(unshare, [...ownMounts, 'true']).status === 0;

test.runIf(canMount)(
  'a home on a read-only file system is said, and nobody is sent to setup',
  async () => {
    const home = tempFolder();
    const script = 'mount -t tmpfs -o ro tmpfs "$HOME" && exec "$0" "$@"';
    const words = [process.execPath, BIN, 'setup', '--yes', '--upstream', 'ollama'];
    const ran = await runProgram([unshare, ...ownMounts, 'sh', '-c', script, ...words], {
      home,
      cwd: '/',
    });
    expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining('read-only')]);
    expect(ran.stderr).not.toContain('Run: svc setup');
  },
);

test('a user without a name and without HOME, as in a container, has the home /', () => {
  const preload = join(tempFolder(), 'nameless.cjs');
  const code = `const os = require('node:os');
    const named = os.homedir;
    os.homedir = () => {
      if (process.env.HOME === undefined) throw new Error('ENOENT');
      return named();
    };
    require('node:module').syncBuiltinESMExports();`;
  writeFileSync(preload, code);
  const env = { PATH: process.env['PATH'], NODE_OPTIONS: `--require ${preload}` };
  const place = { SVC_CONFIG_HOME: tempFolder(), SVC_DATA_HOME: tempFolder() };
  const ask = (args: readonly string[]) =>
    spawnSync(process.execPath, [BIN, ...args], { env: { ...env, ...place }, encoding: 'utf8' });
  expect(ask(['status'])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('There is no configuration yet') as unknown,
  });
  expect(ask(['memory', 'list'])).toMatchObject({ status: 0 });
});
