import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { build } from 'tsup';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli, runProgram, tempFolder } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';

const outDir = tempFolder();
const program = join(outDir, 'start-with-fake.js');
const children = new Set<ChildProcess>();

beforeAll(async () => {
  await build({
    config: false,
    entry: [join(import.meta.dirname, '../support/start-with-fake.ts')],
    outDir,
    format: 'esm',
    outExtension: () => ({ js: '.js' }),
    target: 'node20',
    silent: true,
    noExternal: [/.*/],
    // Outside of a package a .js file is CommonJS.
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
  });
  writeFileSync(join(outDir, 'package.json'), '{"type":"module"}');
});

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly ended: () => Promise<number | null>;
}

async function startFake(home: string, env: Record<string, string> = {}): Promise<Started> {
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env },
  });
  children.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const closed = once(child, 'close') as Promise<[number | null]>;
  await expect.poll(() => stdout).toContain('\n');
  await expect.poll(() => stderr).toContain('svc listens on');
  const { url } = JSON.parse(stdout) as { url: string };
  return {
    child,
    url,
    stdout: () => stdout,
    stderr: () => stderr,
    ended: async () => (await closed)[0],
  };
}

async function answerOf(url: string): Promise<{ mode: string; token: string }> {
  return (await (await fetch(url)).json()) as { mode: string; token: string };
}

const anyPort = { ...validConfig(), proxy: { port: 0 } };

// spec: 4.5-start
test('start says its address and what to do next in one line, and the address as JSON', async () => {
  const { child, url, stdout, stderr, ended } = await startFake(homeWith(anyPort));
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(stderr()).toBe(
    `svc listens on ${url}. Next, in the shell of your client: eval "$(svc print-config claude)", or see svc print-config codex.\n`,
  );
  expect(stdout().trim().split('\n')).toHaveLength(1);
  child.kill('SIGTERM');
  expect(await ended()).toBe(0);
});

test('R33: SIGTERM lets the proxy stop and ends with 0, SIGINT with 130', async () => {
  for (const [signal, code] of [
    ['SIGTERM', 0],
    ['SIGINT', 130],
  ] as const) {
    const { child, stderr, ended } = await startFake(homeWith(anyPort), { STOP_MS: '300' });
    child.kill(signal);
    expect(await ended()).toBe(code);
    expect(stderr()).toContain('stopped\n');
  }
});

test('R33: a second signal ends at once', async () => {
  const { child, stderr, ended } = await startFake(homeWith(anyPort), { STOP_MS: '50000' });
  child.kill('SIGINT');
  await expect.poll(stderr).toContain('Press again to stop now');
  child.kill('SIGINT');
  expect(await ended()).toBe(130);
  expect(stderr()).not.toContain('stopped');
});

test('R33: the first start, which writes the configuration, stops as cleanly as any other', async () => {
  const env = { ANTHROPIC_API_KEY: PROVIDER_KEY, SVC_PORT: '0', STOP_MS: '300' };
  const { child, stderr, ended } = await startFake(tempFolder(), env);
  child.kill('SIGTERM');
  expect(await ended()).toBe(0);
  expect(stderr()).toContain('stopped\n');
});

test('R32: a taken port is one line that names it, and what to do', async () => {
  const blocker = createServer().listen(0, '127.0.0.1');
  await once(blocker, 'listening');
  const address = blocker.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const home = homeWith({ ...validConfig(), proxy: { port } });
  const { code, stdout, stderr } = await runProgram([process.execPath, program], { home });
  blocker.close();
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr.match(/^svc: .*$/gm)).toEqual([
    `svc: Another program uses port ${port} on 127.0.0.1, or svc runs there already.`,
  ]);
  expect(stderr).toContain(`svc start --port ${port + 1}`);
});

test('R31: a changed file is in use within a second or so, and a broken one is not', async () => {
  const home = homeWith(anyPort);
  const file = join(home, '.config/svc/config.json');
  const { child, url, stderr, ended } = await startFake(home);
  expect(await answerOf(url)).toEqual({ mode: 'read-write', token: LOCAL_TOKEN });
  const token = LOCAL_TOKEN.replace('MDEy', 'QUJD');
  const changed = { ...anyPort, proxy: { port: 0, memoryMode: 'off' }, localToken: token };
  writeFileSync(file, JSON.stringify(changed));
  await expect.poll(() => answerOf(url)).toEqual({ mode: 'off', token });
  const broken = { ...changed, proxy: { port: 0, memoryMode: 'all', inputBudget: -1 } };
  writeFileSync(file, JSON.stringify(broken));
  for (const told of ['proxy.inputBudget', 'proxy.memoryMode', 'svc keeps the old one'])
    await expect.poll(stderr).toContain(told);
  expect(await answerOf(url)).toEqual({ mode: 'off', token });
  writeFileSync(file, JSON.stringify({ ...changed, proxy: { port: 1, memoryMode: 'read' } }));
  await expect.poll(stderr).toContain('after a restart of svc');
  child.kill('SIGTERM');
  expect(await ended()).toBe(0);
  expect(stderr()).not.toContain(token);
});

test('with no file and a key in the environment start writes a file that names the key', async () => {
  const home = tempFolder();
  const env = { ANTHROPIC_API_KEY: PROVIDER_KEY, OPENAI_API_KEY: 'sk-CANARY', SVC_PORT: '0' };
  const { child, stderr, stdout, ended } = await startFake(home, env);
  child.kill('SIGTERM');
  await ended();
  const folder = join(home, '.config/svc');
  const text = readFileSync(join(folder, 'config.json'), 'utf8');
  const config = JSON.parse(text) as { upstreams: { apiStyle: string; providerKey: unknown }[] };
  expect(config.upstreams.map(({ apiStyle, providerKey }) => [apiStyle, providerKey])).toEqual([
    ['anthropic_messages', { env: 'ANTHROPIC_API_KEY' }],
    ['openai_responses', { env: 'OPENAI_API_KEY' }],
    ['openai_chat_completions', { env: 'OPENAI_API_KEY' }],
  ]);
  expect(text + stderr() + stdout()).not.toContain('CANARY');
  expect(stderr()).toContain(`svc wrote ${join(folder, 'config.json')} for anthropic and openai`);
  expect(lstatSync(folder).mode & 0o777).toBe(0o700);
  expect(lstatSync(join(folder, 'config.json')).mode & 0o777).toBe(0o600);
});

test('with no file and no key start says what to do', async () => {
  const { code, stdout, stderr } = await runCli(['start'], { home: tempFolder() });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain('svc setup --yes --upstream anthropic --key-env ANTHROPIC_API_KEY');
});

test('a configuration broken in three places is three lines', async () => {
  const config = { ...validConfig(), proxy: { port: 70_000, memoryMode: 'x' }, memory: 'hosted' };
  const { code, stdout, stderr } = await runCli(['start'], { home: homeWith(config) });
  expect([code, stdout]).toEqual([1, '']);
  const lines = stderr.match(/^svc: .*$/gm) ?? [];
  expect(lines.map((line) => line.split(' ')[1])).toEqual([
    'proxy.port:',
    'proxy.memoryMode:',
    'memory:',
  ]);
});

test('where the file is right, the hint names the variable and leaves the file alone', async () => {
  const [upstream] = validConfig()['upstreams'] as object[];
  const named = { ...upstream, providerKey: { env: 'WORK_KEY' } };
  const home = homeWith({ ...validConfig(), upstreams: [named] });
  const unset = await runCli(['start'], { home });
  expect(unset.stderr).toContain("Set WORK_KEY in svc's environment");
  expect(unset.stderr).not.toContain('config.json');
  // As in a shell that has evaluated what print-config says.
  const own = await runCli(['start'], { home, env: { WORK_KEY: LOCAL_TOKEN } });
  expect(own.stderr).toContain('which svc print-config puts there for clients');
  expect(own.stderr).toContain("Set WORK_KEY in svc's environment");
  const env = { WORK_KEY: PROVIDER_KEY, SVC_PORT: 'eight' };
  const garbage = await runCli(['start'], { home, env });
  expect(garbage.stderr).toContain('unset SVC_PORT');
  const both = await runCli(['start'], { home, env: { SVC_PORT: 'eight' } });
  expect(both.stderr).toContain("unset SVC_PORT; Set WORK_KEY in svc's environment");
});

test('a wrong flag is wrong usage', async () => {
  const args = ['start', '--port', '99999', '--memory-mode', 'all'];
  const { code, stderr } = await runCli(args, { home: homeWith(validConfig()) });
  expect(code).toBe(2);
  expect(stderr.match(/^svc: /gm)).toHaveLength(2);
});

test('R28: start makes a file private that was not, and says so', async () => {
  const home = homeWith(anyPort);
  chmodSync(join(home, '.config/svc/config.json'), 0o644);
  const { child, stderr, ended } = await startFake(home);
  child.kill('SIGTERM');
  await ended();
  expect(stderr()).toContain('Others could read');
  expect(lstatSync(join(home, '.config/svc/config.json')).mode & 0o777).toBe(0o600);
});
