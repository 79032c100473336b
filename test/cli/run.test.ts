import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { requestRow } from '../support/request-row.ts';
import { BIN, type CliResult, runCli, runHere } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';

// Each test starts a real proxy in a process of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

/** Says how it was started, then does what the test wants. */
const CLIENT = `#!${process.execPath}
const names = ['ANTHROPIC_BASE_URL', 'ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY', 'NO_PROXY', 'no_proxy',
  'CLAUDE_CODE_GATEWAY_HINT_HEADERS', 'ENABLE_TOOL_SEARCH', 'SVC_LOCAL_PROXY_TOKEN', 'OF_THE_USER'];
const env = Object.fromEntries(names.map((name) => [name, process.env[name]]));
process.on('SIGTERM', () => process.exit(43));
process.stdout.write(JSON.stringify({ args: process.argv.slice(2), env }) + '\\n');
if (process.argv.includes('wait')) setInterval(() => {}, 1000);
else process.exit(process.argv.includes('fail') ? 42 : 0);
`;

interface Told {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A home whose proxy listens on any port, and a PATH with both clients on it. */
function stage(config: unknown = { ...validConfig(), proxy: { port: 0 } }): {
  home: string;
  env: Record<string, string>;
} {
  const home = homeWith(config);
  const bin = join(home, 'bin');
  mkdirSync(bin);
  for (const name of ['claude', 'codex']) {
    writeFileSync(join(bin, name), CLIENT);
    chmodSync(join(bin, name), 0o755);
  }
  const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}`, SVC_DATA_HOME: join(home, 'data') };
  onTestFinished(async () => {
    await runHere(['stop'], { home, env });
  });
  return { home, env };
}

function toldBy({ stdout }: CliResult): Told {
  return JSON.parse(stdout) as Told;
}

async function statusOf(options: {
  home: string;
  env: Record<string, string>;
}): Promise<{ url: string; pid: number; port: number }[]> {
  const { stdout } = await runHere(['status', '--json'], options);
  return JSON.parse(stdout) as { url: string; pid: number; port: number }[];
}

test('run claude: starts the proxy, tells the client by its environment alone, and edits no file', async () => {
  const at = stage();
  const env = { ...at.env, ANTHROPIC_API_KEY: PROVIDER_KEY, OF_THE_USER: 'kept', NO_PROXY: 'a.b' };
  const before = readdirSync(at.home).toSorted();
  const result = await runCli(['run', 'claude', '--', '-p', 'hi there', '--resume'], {
    home: at.home,
    env,
  });
  expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('svc listens on')]);
  const { args, env: seen } = toldBy(result);
  const [proxy] = await statusOf(at);
  expect(args).toEqual(['-p', 'hi there', '--resume']);
  expect(seen).toEqual({
    ANTHROPIC_BASE_URL: proxy?.url,
    ANTHROPIC_AUTH_TOKEN: LOCAL_TOKEN,
    CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
    ENABLE_TOOL_SEARCH: 'true',
    NO_PROXY: 'a.b,127.0.0.1,localhost',
    no_proxy: 'a.b,127.0.0.1,localhost',
    OF_THE_USER: 'kept',
  });
  expect(readdirSync(at.home).toSorted()).toEqual([...before, 'data'].toSorted());
});

test('run claude: the search for MCP tools is on for Anthropic, and as the person set it', async () => {
  const at = stage();
  const own = await runCli(['run', 'claude'], {
    ...at,
    env: { ...at.env, ENABLE_TOOL_SEARCH: '' },
  });
  expect(toldBy(own).env['ENABLE_TOOL_SEARCH']).toBe('');
  const upstreams = [
    { ...(validConfig()['upstreams'] as object[])[0], baseUrl: 'https://gateway.example.com' },
  ];
  const gateway = stage({ ...validConfig(), upstreams, proxy: { port: 0 } });
  const other = await runCli(['run', 'claude'], gateway);
  expect(toldBy(other).env['ENABLE_TOOL_SEARCH']).toBeUndefined();
});

test.each([
  ['claude', 'openai', 'svc setup --yes --upstream anthropic'],
  ['codex', 'anthropic', 'svc setup --yes --upstream openai'],
])('run %s: with a provider of %s alone nothing starts', async (name, _, fix) => {
  const apiStyle = name === 'claude' ? 'openai_responses' : 'anthropic_messages';
  const upstreams = [{ ...(validConfig()['upstreams'] as object[])[0], apiStyle }];
  const at = stage({ ...validConfig(), upstreams, proxy: { port: 0 } });
  const ran = await runCli(['run', name], at);
  expect([ran.code, ran.stdout, ran.stderr]).toEqual([1, '', expect.stringContaining(fix)]);
  expect((await runHere(['status'], at)).code).toBe(1);
});

test('run codex: the provider stands in arguments before its own, the token in a variable', async () => {
  const upstreams = [
    { ...(validConfig()['upstreams'] as object[])[0], apiStyle: 'openai_responses' },
  ];
  const at = stage({ ...validConfig(), upstreams, proxy: { port: 0 } });
  const result = await runCli(['run', 'codex', 'exec', '--json', 'what is this?'], at);
  const { args, env } = toldBy(result);
  const [proxy] = await statusOf(at);
  expect(args).toEqual([
    '-c',
    `model_providers.svc={ name="svc local proxy", base_url="${proxy?.url}/v1", env_key="SVC_LOCAL_PROXY_TOKEN", wire_api="responses", supports_websockets=false }`,
    '-c',
    'model_provider="svc"',
    'exec',
    '--json',
    'what is this?',
  ]);
  expect(args.join(' ')).not.toContain(LOCAL_TOKEN);
  expect(env['SVC_LOCAL_PROXY_TOKEN']).toBe(LOCAL_TOKEN);
  expect(env['NO_PROXY']).toContain('127.0.0.1');
});

test('a second run uses the proxy of the first, and the exit code is the client’s', async () => {
  const at = stage();
  expect((await runCli(['run', 'claude', 'fail'], at)).code).toBe(42);
  const [first] = await statusOf(at);
  const again = await runCli(['run', 'claude', 'fail'], at);
  expect([again.code, again.stderr]).toEqual([42, expect.not.stringContaining('svc listens on')]);
  expect((await statusOf(at)).map(({ pid }) => pid)).toEqual([first?.pid]);
});

test('two runs at once end up with proxies that work', async () => {
  const port = await freePort();
  const at = stage({ ...validConfig(), proxy: { port } });
  const results = await Promise.all([
    runCli(['run', 'claude'], at),
    runCli(['run', 'claude'], at),
    runCli(['start', '--detach'], at),
  ]);
  expect(results.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect((await statusOf(at)).map((proxy) => proxy.port)).toEqual([port]);
});

test('a signal goes to the client, which decides how it ends', async () => {
  const at = stage();
  const child = spawn(process.execPath, [BIN, 'run', 'claude', 'wait'], {
    env: { HOME: at.home, ...at.env },
  });
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([43, null]);
});

test('a proxy that is killed under a client is there again at its address; one that was stopped is not', async () => {
  const at = stage();
  const child = spawn(process.execPath, [BIN, 'run', 'claude', 'wait'], {
    env: { HOME: at.home, ...at.env },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const [first] = await statusOf(at);
  process.kill(first?.pid ?? 0, 'SIGKILL');
  // svc status would remove the file of the killed one.
  const files = (): string => readdirSync(join(at.home, 'data')).join(' ');
  const other = new RegExp(`\\bproxy-(?!${first?.pid}\\.)\\d+\\.json`);
  await vi.waitFor(() => expect(files()).toMatch(other), 30_000);
  const [second] = await statusOf(at);
  expect(second).toMatchObject({ port: first?.port });
  expect(second?.pid).not.toBe(first?.pid);
  expect((await runHere(['stop'], at)).code).toBe(0);
  await sleep(2000);
  expect(await statusOf(at)).toEqual([]);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([43, null]);
});

test('T4: whoever took the port gets no token, and the client is not started', async () => {
  let heard = '';
  const stranger = createServer((request, answer) => {
    heard += JSON.stringify([request.url, request.rawHeaders]);
    // Passes for svc as far as anybody can tell without the token.
    answer.setHeader('x-svc-local-proxy', '0.1.2');
    answer.end('{"status":"ok","service":"svc"}');
  }).listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  onTestFinished(() => void stranger.close());
  const { port } = stranger.address() as AddressInfo;
  const result = await runCli(['run', 'claude'], stage({ ...validConfig(), proxy: { port } }));
  expect([result.code, result.stdout]).toEqual([1, '']);
  expect(result.stderr).toContain(`port ${port}`);
  expect(heard).toContain('x-svc-challenge');
  expect(heard).not.toContain('svc_local_');
});

test('stop ends the proxy and nothing else: a file that names another process is not obeyed', async () => {
  const at = stage();
  const bystander = spawn('sleep', ['60']);
  onTestFinished(() => void bystander.kill());
  await runCli(['start', '--detach'], at);
  const [proxy] = await statusOf(at);
  const forged = { pid: bystander.pid, host: '127.0.0.1', version: '0.1.2', startedAt: 1 };
  // The real proxy's own port: it proves itself there, but not that process.
  const text = JSON.stringify({ ...forged, port: proxy?.port });
  writeFileSync(join(at.env['SVC_DATA_HOME'] ?? '', `proxy-${bystander.pid}.json`), text);
  const { code, stderr } = await runCli(['stop'], at);
  expect(code).toBe(0);
  // The running proxy shows that the file is stale, so nothing is said of that process.
  expect(stderr).toBe(`Stopped: ${proxy?.url}\n`);
  expect(isRunning(bystander)).toBe(true);
  expect((await runHere(['status'], at)).code).toBe(1);
});

test('stop says how many answers it has cut', async () => {
  const provider = createServer((_, answer) => void answer.write('{')).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  onTestFinished(() => void provider.close());
  const { port } = provider.address() as AddressInfo;
  const here = { baseUrl: `http://127.0.0.1:${port}`, allowPrivate: true };
  const upstreams = [{ ...upstream(), ...here }];
  const at = stage({ ...validConfig(), upstreams, proxy: { port: 0, drainMs: 100 } });
  await runCli(['start', '--detach'], at);
  const [proxy] = await statusOf(at);
  const answers = ['one', 'two'].map((content) =>
    fetch(`${proxy?.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': LOCAL_TOKEN, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content }] }),
    }),
  );
  const bodies = (await Promise.all(answers)).map((answer) => answer.text().catch(() => 'cut'));
  const { code, stderr } = await runCli(['stop'], at);
  expect(await Promise.all(bodies)).toEqual(['cut', 'cut']);
  expect([code, stderr]).toEqual([0, expect.stringContaining('warning: 2 answers were cut')]);
});

test('a killed proxy leaves nothing that hinders the next one', async () => {
  const at = stage();
  await runCli(['start', '--detach'], at);
  const [killed] = await statusOf(at);
  process.kill(killed?.pid ?? 0, 'SIGKILL');
  await vi.waitFor(async () => expect(await statusOf(at)).toEqual([]), { timeout: 30_000 });
  expect((await runCli(['run', 'claude'], at)).code).toBe(0);
  expect(await statusOf(at)).toHaveLength(1);
});

test('start --detach says what is wrong here, not in a log', async () => {
  const wrong = await runCli(['start', '--detach', '--port', 'x'], stage());
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('--port')]);
  const unset = {
    ...validConfig(),
    upstreams: [{ ...upstream(), providerKey: { env: 'NO_KEY' } }],
  };
  const missing = await runCli(['start', '--detach'], stage(unset));
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('$NO_KEY')]);
});

test('a client that is not there is told with how to install it', async () => {
  const at = stage();
  const env = { ...at.env, PATH: '/usr/bin:/bin' };
  const { code, stderr } = await runCli(['run', 'claude'], { home: at.home, env });
  expect(code).toBe(1);
  expect(stderr).toContain('npm install -g @anthropic-ai/claude-code');
  const unknown = await runCli(['run', 'aider'], at);
  expect([unknown.code, unknown.stderr]).toEqual([
    2,
    expect.stringContaining('claude, codex, opencode'),
  ]);
});

test('R28: the log and the file of a background proxy are private', async () => {
  const at = stage();
  await runCli(['start', '--detach'], at);
  const folder = at.env['SVC_DATA_HOME'] ?? '';
  const names = readdirSync(folder).filter((name) => name.startsWith('proxy'));
  expect(names.toSorted()).toEqual([expect.stringMatching(/^proxy-\d+\.json$/), 'proxy.log']);
  for (const name of names) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
});

test('status says that a proxy has no file in the data folder: its memories may be elsewhere', async () => {
  const at = stage({ ...validConfig(), proxy: { port: await freePort() } });
  await runCli(['start', '--detach'], at);
  expect((await runCli(['status'], at)).stderr).toBe('');
  const folder = `${at.env['SVC_DATA_HOME'] ?? ''}-other`;
  const other = { ...at, env: { ...at.env, SVC_DATA_HOME: folder } };
  const { stdout, stderr, code } = await runHere(['status'], other);
  expect([code, stdout]).toEqual([0, expect.stringContaining('svc runs on')]);
  expect(stderr).toContain(`has no file in ${folder}. It uses another data folder`);
});

test('a proxy on a free port is found again after its data folder was removed', async () => {
  const at = stage({ ...validConfig(), proxy: { port: 0 } });
  await runCli(['start', '--detach'], at);
  rmSync(at.env['SVC_DATA_HOME'] ?? '', { recursive: true });
  await vi.waitFor(
    async () =>
      expect((await runHere(['stop'], at)).stderr).toContain('Stopped: http://127.0.0.1:'),
    { timeout: 50_000, interval: 1000 },
  );
});

function upstream(): object {
  return (validConfig()['upstreams'] as object[])[0] ?? {};
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

test('a run ends with one line of what svc did in it, and none where the client asked nothing', async () => {
  const at = stage();
  const silent = await runCli(['run', 'claude'], at);
  expect(silent.stderr).not.toContain('svc in this run');
  const row = requestRow({
    at: Date.now() + 3_600_000,
    price: { paid: 6_000, direct: 47_000 },
    recall: { exchange: 0, refs: [], isUsed: false },
    miss: { by: 'time', tokens: 52_000, price: 1 },
  });
  const store = openEmbeddedStore({ folder: join(at.home, 'data'), report: () => undefined });
  store.requestLog.add(row);
  store.requestLog.add({ ...row, id: 'r2', client: 'codex' });
  const without = requestRow({ at: row.at });
  store.requestLog.add({ ...without, id: 'r3', memoryState: 'degraded_timeout' });
  store.requestLog.add({ ...without, id: 'r4', memoryState: 'degraded_unavailable' });
  await store.close();
  const { stderr } = await runCli(['run', 'claude'], at);
  expect(stderr.trim().split('\n').at(-1)).toBe(
    'svc in this run: 3 requests, memories for 1 prompt, memory too late for 1 request, ' +
      'no memory for 1 request (why: svc doctor), 41k tokens kept, 1 cache miss of 52k tokens. See: svc ui',
  );
});
