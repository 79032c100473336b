import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runCli } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';

// Each test starts real proxies in processes of their own, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

interface Running {
  readonly pid: number;
  readonly url: string;
  readonly build: string;
}

/** A home whose proxy runs in the background, and a client that does nothing. */
async function stage(upstream: object = {}) {
  const config = validConfig() as { upstreams: object[] };
  const upstreams = config.upstreams.map((one) => ({ ...one, ...upstream }));
  const home = homeWith({ ...config, upstreams, proxy: { port: await freePort() } });
  mkdirSync(join(home, 'bin'));
  writeFileSync(join(home, 'bin/claude'), '#!/bin/sh\nexit 0\n');
  chmodSync(join(home, 'bin/claude'), 0o755);
  const data = join(home, 'data');
  const path = `${join(home, 'bin')}:${process.env['PATH'] ?? ''}`;
  const at = { home, env: { PATH: path, SVC_DATA_HOME: data } };
  onTestFinished(async () => void (await runCli(['stop'], at)));
  const run = (first: string | Readonly<Record<string, string>>, ...args: string[]) =>
    typeof first === 'string'
      ? runCli([first, ...args], at)
      : runCli(args, { ...at, env: { ...at.env, ...first } });
  const running = async (): Promise<Running> => {
    const [proxy] = JSON.parse((await run('status', '--json')).stdout) as Running[];
    expect(proxy).toBeDefined();
    return proxy ?? { pid: 0, url: '', build: '' };
  };
  return { run, running, age: (changes: object) => rewrite(data, changes) };
}

/** As if the proxy had been started by another build. */
function rewrite(data: string, changes: object): void {
  for (const name of readdirSync(data).filter((one) => /^proxy-\d+\.json$/.test(one))) {
    const path = join(data, name);
    const run = JSON.parse(readFileSync(path, 'utf8')) as object;
    writeFileSync(path, JSON.stringify({ ...run, build: 'older-build', ...changes }));
  }
}

test('run names a proxy of another build and puts this one in its place, with the same settings', async () => {
  const { run, running, age } = await stage();
  expect((await run('start', '--detach', '--memory-mode', 'read')).code).toBe(0);
  const old = await running();
  // The same build is left alone.
  expect((await run('run', 'claude')).stderr).not.toContain('another build');
  expect((await running()).pid).toBe(old.pid);
  age({});
  const ran = await run('run', 'claude');
  expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining('runs another build of svc')]);
  const next = await running();
  expect([next.pid === old.pid, next.url, next.build]).toEqual([false, old.url, old.build]);
  expect(next).toMatchObject({ flags: { memoryMode: 'read' } });
  const answer = await fetch(`${next.url}/livez`);
  expect(answer.status).toBe(200);
});

test('a proxy that a person or a service manager started is named and goes on', async () => {
  const { run, running, age } = await stage();
  await run('start', '--detach');
  const old = await running();
  age({ isDetached: false });
  const said = (await run('status')).stderr.replaceAll(/\s+/g, ' ');
  expect(said).toContain('another build of svc');
  expect(said).toContain('0.1.2 (build older-build)');
  expect(said).toContain(`This is ${(await run('--version')).stdout.trim()}.`);
  const checks = (await run('doctor')).stdout.replaceAll(/\s+/g, ' ');
  expect(checks).toContain(`is build older-build of 0.1.2, this command is build ${old.build}`);
  const { code, stderr } = await run('run', 'claude');
  expect([code, stderr]).toEqual([0, expect.stringContaining('Restart it yourself')]);
  expect((await running()).pid).toBe(old.pid);
});

test('a proxy of another build goes on where this one could not start, for want of its key', async () => {
  const { run, running, age } = await stage({ providerKey: { env: 'WORK_KEY' } });
  const withKey = { WORK_KEY: 'sk-work' };
  expect((await run(withKey, 'start', '--detach')).code).toBe(0);
  const old = await running();
  age({});
  const { code, stderr } = await run('ui', '--print');
  expect([code, stderr.replaceAll(/\s+/g, ' ')]).toEqual([
    0,
    expect.stringContaining('It keeps running, because this one could not start.'),
  ]);
  expect((await running()).pid).toBe(old.pid);
  expect((await run(withKey, 'run', 'claude')).stderr).toContain('this build replaces it');
});

test('an answer that is under way is not cut: the client starts on the old proxy', async () => {
  const provider = createServer((_, answer) => {
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    answer.write('event: ping\ndata: {}\n\n');
    // Longer than a person waits for it.
    setTimeout(() => answer.end('event: message_stop\ndata: {}\n\n'), 14_000);
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  onTestFinished(() => void provider.close());
  const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const { run, running, age } = await stage({ baseUrl, allowPrivate: true });
  await run('start', '--detach');
  const old = await running();
  age({});
  const answer = await fetch(`${old.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': LOCAL_TOKEN, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'x' }] }),
  });
  const [{ code, stderr }, text] = await Promise.all([run('run', 'claude'), answer.text()]);
  expect([code, stderr]).toEqual([0, expect.stringContaining('it is answering 1 request')]);
  expect(text).toContain('message_stop');
  expect(stderr).not.toContain(PROVIDER_KEY);
});

test('the token command does the same for its own program, and leaves another installation alone', async () => {
  const { run, running, age } = await stage();
  await run('start', '--detach');
  const old = await running();
  age({ script: '/elsewhere/bin/svc.js' });
  expect(await run('config', 'token', '--start')).toMatchObject({ stdout: `${LOCAL_TOKEN}\n` });
  expect((await running()).pid).toBe(old.pid);
  await run('stop');
  await run('start', '--detach');
  const own = await running();
  age({});
  expect(await run('config', 'token', '--start')).toMatchObject({ stdout: `${LOCAL_TOKEN}\n` });
  const next = await running();
  expect([next.pid === own.pid, next.url]).toEqual([false, own.url]);
});
