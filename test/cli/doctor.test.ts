import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { type CliOptions, runCli, runHere, tempFolder } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

interface Report {
  ok: boolean;
  checks: { level: string; subject: string; found: string; fix?: string }[];
}

async function report(
  options: CliOptions,
  run = runHere,
): Promise<Report & { code: number | null }> {
  const { stdout, stderr, code } = await run(['doctor', '--json', '--offline'], options);
  expect(stdout + stderr).not.toContain(PROVIDER_KEY);
  return { ...(JSON.parse(stdout) as Report), code };
}

async function listen(server: Server | ReturnType<typeof createSocketServer>): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return typeof address === 'object' ? (address?.port ?? 0) : 0;
}

function find({ checks }: Report, subject: string): Report['checks'][number] | undefined {
  return checks.find((check) => check.subject === subject);
}

test('--offline and --live together are refused, and nothing is sent', async () => {
  const { stdout, stderr, code } = await runHere(['doctor', '--offline', '--live', '--yes'], {
    home: tempFolder(),
  });
  expect([stdout, code]).toEqual(['', 2]);
  expect(stderr).toContain('--offline and --live exclude each other.');
});

test('all well: exit 0, and every upstream with its key masked', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const result = await report({ home });
  expect(result.checks.filter(({ level }) => level === 'problem')).toEqual([]);
  expect([result.ok, result.code]).toEqual([true, 0]);
  expect(find(result, 'Upstream')?.found).toBe(
    'anthropic, anthropic_messages, api.anthropic.com, key: …8d9e',
  );
});

test('a provider has its name with digits, and a login is no missing key', async () => {
  const baseUrl = 'https://api.anthropic.com';
  const [style, other] = ['anthropic_messages', 'openai_responses'];
  const upstreams = [
    { name: 'team-2', apiStyle: style, baseUrl, auth: 'client' },
    { name: 'ab12cd34ef56', apiStyle: other, baseUrl, providerKey: PROVIDER_KEY, auth: 'bearer' },
  ];
  const { checks } = await report({ home: homeWith({ ...validConfig(), upstreams }) });
  expect(checks.filter(({ subject }) => subject === 'Upstream').map(({ found }) => found)).toEqual([
    `team-2, ${style}, api.anthropic.com, the login of its client`,
    `?, ${other}, api.anthropic.com, key: …8d9e`,
  ]);
});

test('for people there is a line for each, and the mending below it', async () => {
  const { stdout, stderr, code } = await runHere(['doctor'], { home: tempFolder() });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^ok {7}Node: /m);
  expect(stdout).toMatch(/^problem {2}Configuration: .* does not exist\n {9}svc setup --yes/m);
  expect(stderr).toContain('1 problem');
});

test('R28: open modes and links are problems with the command that mends them', async () => {
  const home = homeWith(validConfig());
  const folder = join(home, '.config/svc');
  chmodSync(folder, 0o755);
  const open = await report({ home });
  expect(find(open, 'Configuration')).toMatchObject({ level: 'problem', fix: 'svc doctor --fix' });
  expect(open.code).toBe(1);
  symlinkSync(folder, join(home, 'link'));
  const linked = await report({ home, env: { SVC_CONFIG_HOME: join(home, 'link') } });
  expect(find(linked, 'Configuration')?.found).toContain('symbolic link');
  const data = join(home, 'data');
  mkdirSync(data, { mode: 0o755 });
  const store = await report({ home, env: { SVC_DATA_HOME: data } });
  expect(find(store, 'Store')).toMatchObject({ level: 'problem', fix: 'svc doctor --fix' });
});

test('every wrong setting is a problem of its own', async () => {
  const proxy = { port: -1, memoryMode: 'x', prot: 1 };
  const home = homeWith({ ...validConfig(), proxy, localToken: PROVIDER_KEY });
  const { checks } = await report({ home });
  const settings = checks.filter(({ subject }) => subject === 'Setting');
  expect(settings.map(({ level }) => level)).toEqual(['problem', 'problem', 'problem', 'warning']);
});

test.each([null, ''])(
  '--fix makes a local token in the place of %j, which is none',
  async (localToken) => {
    const home = homeWith({ ...validConfig(), localToken });
    const before = await report({ home });
    expect(find(before, 'Setting')).toMatchObject({ level: 'problem', fix: 'svc doctor --fix' });
    await runHere(['doctor', '--offline', '--fix'], { home });
    expect(find(await report({ home }), 'Setting')).toBeUndefined();
  },
);

test('a local token of another form is not replaced: start and doctor say how a new one is made', async () => {
  const home = homeWith({ ...validConfig(), localToken: 'abc' });
  const path = join(home, '.config/svc/config.json');
  const { stderr } = await runHere(['start'], { home });
  expect(stderr).toContain(
    `Take localToken out of ${path}. Make a new token with: svc doctor --fix`,
  );
  await runHere(['doctor', '--offline', '--fix'], { home });
  const fix = `Take localToken out of ${path}, then run: svc doctor --fix`;
  expect(find(await report({ home }), 'Setting')).toMatchObject({ level: 'problem', fix });
});

test('T4: who listens on the port is told, and is sent no token', async () => {
  let heard = '';
  const stranger = createServer((request, answer) => {
    heard += JSON.stringify([request.url, request.rawHeaders]);
    answer.end('hello');
  });
  const port = await listen(stranger);
  const config = { ...validConfig(), proxy: { port } };
  const taken = await report({ home: homeWith(config) });
  stranger.close();
  expect(find(taken, 'Port')).toMatchObject({ level: 'problem' });
  expect(heard).toContain('/health');
  expect(heard).not.toContain('svc_local_');
  const svc = createServer((_, answer) => {
    answer.setHeader('x-svc-local-proxy', '1');
    answer.end('{}');
  });
  const own = await report({ home: homeWith({ ...config, proxy: { port: await listen(svc) } }) });
  svc.close();
  expect(find(own, 'Port')).toMatchObject({ level: 'problem' });
  expect(find(own, 'Port')?.found).toContain('does not know the token of this configuration');
  const silent = createSocketServer();
  const mute = { ...config, proxy: { port: await listen(silent) } };
  expect(find(await report({ home: homeWith(mute) }), 'Port')?.found).toContain('does not answer');
  silent.close();
});

test('a proxy of the network that clients would send everything to is a warning', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const env = {
    HTTPS_PROXY: 'http://proxy.corp:8080',
    ANTHROPIC_BASE_URL: 'http://127.0.0.1:1/v1',
  };
  const { checks, code } = await report({ home, env });
  const clients = checks.filter(({ subject }) => ['Clients', 'Claude Code'].includes(subject));
  expect(clients.map(({ level }) => level)).toEqual(['warning', 'warning']);
  expect(clients[0]?.fix).toBe('export NO_PROXY=127.0.0.1,localhost');
  expect(code).toBe(0);
  const spared = await report({ home, env: { ...env, no_proxy: 'a, 127.0.0.1' } });
  expect(spared.checks.filter(({ subject }) => subject === 'Clients')).toEqual([]);
});

test('a key that is named and not set is a problem here', async () => {
  const upstream = { ...(validConfig()['upstreams'] as object[])[0], providerKey: { env: 'NOPE' } };
  const home = homeWith({ ...validConfig(), proxy: { port: 0 }, upstreams: [upstream] });
  const unset = await report({ home });
  expect(find(unset, 'Setting')?.found).toContain('expected a key in $NOPE, found nothing');
  const set = await report({ home, env: { NOPE: PROVIDER_KEY } });
  expect(set.code).toBe(0);
  expect(find(set, 'Upstream')?.found).toContain('key: in $NOPE, set');
});

test('each provider is asked, with the answer read, and nothing of it repeated', async () => {
  let status = 200;
  const provider = createServer((_, answer) => {
    answer.writeHead(status, { 'content-type': 'application/json' });
    answer.end(`{"data":[{},{}],"error":"SECRET-ECHO ${PROVIDER_KEY}"}`);
  });
  const baseUrl = `http://127.0.0.1:${await listen(provider)}`;
  const [upstream] = validConfig()['upstreams'] as object[];
  const homeOf = (changes: object): string => {
    const upstreams = [{ ...upstream, baseUrl, allowPrivate: true, ...changes }];
    return homeWith({ ...validConfig(), proxy: { port: 0 }, upstreams });
  };
  const askedOf = async (home: string): Promise<[string | undefined, string | undefined]> => {
    const { stdout } = await runHere(['doctor', '--json'], { home });
    expect(stdout).not.toMatch(/SECRET-ECHO|CANARY/);
    const found = find(JSON.parse(stdout) as Report, 'Provider');
    return [found?.level, found?.found.replace(/^.*\): /, '')];
  };
  const home = homeOf({});
  expect(await askedOf(home)).toEqual(['ok', 'the key is accepted, it lists 2 models']);
  status = 401;
  expect(await askedOf(home)).toEqual(['problem', 'the provider refuses the key (401)']);
  status = 404;
  expect((await askedOf(home))[0]).toBe('warning');
  status = 500;
  expect((await askedOf(home))[1]).toBe('the provider has a fault (500)');
  provider.close();
  provider.closeAllConnections();
  // The host is told of once, by the check of the way to it.
  expect(await askedOf(home)).toEqual([undefined, undefined]);
});

test('--fix takes from others what they may not have, and says so', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const data = join(home, 'data');
  mkdirSync(data, { mode: 0o755 });
  chmodSync(join(home, '.config/svc/config.json'), 0o644);
  const env = { SVC_DATA_HOME: data };
  expect((await report({ home, env })).code).toBe(1);
  const fixed = await runHere(['doctor', '--fix', '--offline'], { home, env });
  expect(fixed.code).toBe(0);
  expect(fixed.stderr).toContain(`Made private: ${data}`);
  expect((await report({ home, env })).code).toBe(0);
});

test('a proxy whose providers take logins is as good as one with a key', async () => {
  const upstreams = [
    {
      name: 'a',
      apiStyle: 'anthropic_messages',
      baseUrl: 'https://api.anthropic.com',
      auth: 'client',
    },
  ];
  const home = homeWith({ ...validConfig(), upstreams, proxy: { port: 0 } });
  await runCli(['start', '--detach'], { home });
  // The proxy and the command are one build.
  const running = await report({ home }, runCli);
  await runHere(['stop'], { home });
  expect(find(running, 'Proxy')).toMatchObject({ level: 'ok' });
  expect(running.code).toBe(0);
});

test('a running proxy is told with whether it takes the token', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  await runCli(['start', '--detach'], { home });
  // The proxy and the command are one build.
  const running = await report({ home }, runCli);
  const proxy = find(running, 'Proxy');
  expect([running.code, proxy?.level]).toEqual([0, 'ok']);
  expect(proxy?.found).toContain('accepts the local token');
  const { stdout } = await runHere(['requests', '--json'], { home });
  await runHere(['stop'], { home });
  // To ask is no request of the person's.
  expect(JSON.parse(stdout)).toEqual([]);
});

test('clients are found with whether they point here, and with what hinders them', async () => {
  const responses = {
    name: 'openai',
    apiStyle: 'openai_responses',
    baseUrl: 'https://api.openai.com/v1',
    providerKey: PROVIDER_KEY,
    auth: 'bearer',
  };
  const { upstreams } = validConfig() as { upstreams: readonly object[] };
  const both = { ...validConfig(), upstreams: [...upstreams, responses], proxy: { port: 8791 } };
  const home = homeWith(both);
  const bin = join(home, 'bin');
  for (const folder of ['bin', '.claude', '.codex']) mkdirSync(join(home, folder));
  for (const name of ['claude', 'codex']) {
    writeFileSync(join(bin, name), '#!/bin/sh\n', { mode: 0o755 });
  }
  const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  const before = await report({ home, env });
  expect(find(before, 'Claude Code')).toMatchObject({ level: 'ok' });
  expect(find(before, 'Codex')?.found).toContain('svc run codex');
  const alone = await report({ home: homeWith(validConfig()), env });
  expect(find(alone, 'Claude Code')?.found).toContain('svc run claude');
  expect(find(alone, 'Codex')?.found).toBe('installed; no provider of svc serves its API');
  const { stdout: toml } = await runHere(['print-config', 'codex'], { home });
  writeFileSync(join(home, '.codex/config.toml'), toml);
  const bare = { ...env, ANTHROPIC_BASE_URL: 'http://localhost:8791' };
  const unsearched = find(await report({ home, env: bare }), 'Claude Code');
  expect(unsearched?.found).toContain('ENABLE_TOOL_SEARCH is not set');
  expect(unsearched?.fix).toBe('export ENABLE_TOOL_SEARCH=true');
  const here = { ...bare, ENABLE_TOOL_SEARCH: 'false' };
  const pointed = await report({ home, env: here });
  expect(find(pointed, 'Claude Code')?.found).toBe('installed, and uses this proxy');
  // Its own file sends it here however it is started, and nobody is here.
  expect(find(pointed, 'Codex')).toMatchObject({ level: 'warning' });
  expect(find(pointed, 'Codex')?.found).toContain('no proxy runs');
  const elsewhere = toml.replace('8791', '9999');
  writeFileSync(join(home, '.codex/config.toml'), `${elsewhere}\n[profiles.svc]\n`);
  writeFileSync(join(home, '.codex/svc.config.toml'), toml);
  const settings = { env: { ANTHROPIC_BASE_URL: 'https://gateway.example.com/v1' } };
  writeFileSync(join(home, '.claude/settings.json'), JSON.stringify(settings));
  const approved = { customApiKeyResponses: { rejected: [LOCAL_TOKEN.slice(-20)] } };
  writeFileSync(join(home, '.claude.json'), JSON.stringify(approved));
  const { checks, code } = await report({ home, env });
  const told = checks.filter(({ subject }) => ['Claude Code', 'Codex'].includes(subject));
  expect(told.map(({ level }) => level)).toEqual(Array(5).fill('warning'));
  expect(told.every(({ fix }) => fix !== undefined)).toBe(true);
  expect(code).toBe(0);
});

const [ANTHROPIC = {}] = validConfig()['upstreams'] as object[];
const OPENAI = {
  ...ANTHROPIC,
  name: 'openai',
  apiStyle: 'openai_responses',
  baseUrl: 'https://api.openai.com/v1',
  auth: 'bearer',
};

/** A home in which both clients are installed, with the settings that svc writes for them. */
async function homeWithClients(claude: object = ANTHROPIC): Promise<CliOptions> {
  const proxy = { port: await freePort() };
  const home = homeWith({ ...validConfig(), proxy, upstreams: [claude, OPENAI] });
  mkdirSync(join(home, 'bin'));
  for (const name of ['claude', 'codex']) {
    writeFileSync(join(home, 'bin', name), '#!/bin/sh\necho 0.140.0\n', { mode: 0o755 });
  }
  const options = { home, env: { PATH: `${join(home, 'bin')}:${process.env['PATH'] ?? ''}` } };
  for (const name of ['claude', 'codex']) {
    expect((await runHere(['connect', name, '--yes'], options)).code).toBe(0);
  }
  return options;
}

const CLAUDE_LOGIN = {
  name: 'claude-login',
  apiStyle: 'anthropic_messages',
  baseUrl: 'https://api.anthropic.com',
  auth: 'client',
};

test('a client whose settings start the proxy needs none that runs', async () => {
  const options = await homeWithClients();
  const withKey = await report(options);
  for (const client of ['Claude Code', 'Codex']) {
    expect(find(withKey, client)).toEqual({
      level: 'ok',
      subject: client,
      found: 'installed, and uses this proxy, which it starts itself',
    });
  }
  // With a login a hook starts it.
  const withLogin = await report(await homeWithClients(CLAUDE_LOGIN));
  const found = withLogin.checks.filter(({ subject }) => subject === 'Claude Code');
  expect(found.map((one) => one.found)).not.toContain(
    'its settings name this proxy, and no proxy runs: it cannot reach a model',
  );
});

test('Codex is warned of an old profile only where it hinders the profile of svc', async () => {
  const options = await homeWithClients();
  const file = join(options.home, '.codex/config.toml');
  const toml = readFileSync(file, 'utf8');
  writeFileSync(file, `${toml}\n[profiles.mine]\nmodel = "x"\n\n[profiles.svc]\nmodel = "x"\n`);
  expect(find(await report(options), 'Codex')?.level).toBe('ok');
  writeFileSync(join(options.home, '.codex/svc.config.toml'), toml);
  expect(find(await report(options), 'Codex')?.found).toContain('codex -p svc fails');
  writeFileSync(file, `${toml}\n[profiles.mine]\nmodel = "x"\n`);
  expect(find(await report(options), 'Codex')?.level).toBe('ok');
  writeFileSync(file, `${toml}\nmodel = \n`);
  expect(find(await report(options), 'Codex')?.found).toBe('its config.toml is not valid TOML');
});

test('where a login’s provider cannot be reached, no other address is proposed', async () => {
  const baseUrl = `http://127.0.0.1:${await freePort()}`;
  const fixOf = async (changes: object): Promise<string | undefined> => {
    const upstream = { name: 'a', apiStyle: 'anthropic_messages', baseUrl, allowPrivate: true };
    const upstreams = [{ ...upstream, ...changes }];
    const home = homeWith({ ...validConfig(), upstreams, proxy: { port: 0 } });
    const { stdout } = await runHere(['doctor', '--json'], { home });
    return find(JSON.parse(stdout) as Report, 'Network')?.fix;
  };
  expect(await fixOf({ auth: 'client' })).toBe(`Check with: curl -sI ${baseUrl}`);
  expect(await fixOf({ auth: 'none' })).toContain('svc setup --yes --upstream a --base-url');
});

test('a file of the state that cannot be used is a problem, though memories can be read', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 0 } });
  const env = { SVC_DATA_HOME: join(home, 'data') };
  await runHere(['memory', 'add', 'The quay has seven berths.'], { home, env });
  rmSync(join(home, 'data/state.db'));
  mkdirSync(join(home, 'data/state.db'), { mode: 0o700 });
  const { stderr } = await runHere(['requests'], { home, env });
  expect(stderr).toContain('Check with: svc doctor');
  const result = await report({ home, env });
  expect(find(result, 'Store')).toMatchObject({
    level: 'problem',
    found: expect.stringContaining('state.db is a folder, a link or a device'),
  });
});
