import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type CliOptions, runCli, runHere, tempFolder } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const ANTHROPIC = ['setup', '--yes', '--upstream', 'anthropic', '--key-env', 'ANTHROPIC_API_KEY'];

interface Upstream {
  name: string;
  apiStyle: string;
  [key: string]: unknown;
}

interface Config {
  proxy: Record<string, unknown>;
  upstreams: Upstream[];
  localToken: string;
  [key: string]: unknown;
}

function folderIn(home: string): string {
  return join(home, '.config', 'svc');
}

function configIn(home: string): Config {
  return JSON.parse(readFileSync(join(folderIn(home), 'config.json'), 'utf8')) as Config;
}

async function setup(args: readonly string[], options: CliOptions) {
  return runHere(['setup', '--yes', ...args], options);
}

test('R28: a first setup makes folder and file private, whatever the umask', async () => {
  for (const umask of ['000', '022', '077']) {
    const home = tempFolder();
    const { code, stdout } = await runHere(ANTHROPIC, { home, umask });
    expect(code).toBe(0);
    expect(stdout).toBe('');
    expect(lstatSync(folderIn(home)).mode & 0o777).toBe(0o700);
    expect(lstatSync(join(folderIn(home), 'config.json')).mode & 0o777).toBe(0o600);
    expect(readdirSync(folderIn(home))).toEqual(['config.json']);
  }
});

test('a first setup states the defaults, a token of its own, and names the key by its variable', async () => {
  const home = tempFolder();
  const { stderr } = await runHere(ANTHROPIC, { home });
  expect(stderr).toContain('$ANTHROPIC_API_KEY is not set in this shell');
  const config = configIn(home);
  expect(config.proxy['port']).toBe(8765);
  expect(config.localToken).toMatch(/^svc_local_[\w-]{43}$/);
  expect(config.upstreams).toEqual([
    {
      name: 'anthropic',
      apiStyle: 'anthropic_messages',
      baseUrl: 'https://api.anthropic.com',
      auth: 'x-api-key',
      providerKey: { env: 'ANTHROPIC_API_KEY' },
    },
  ]);
});

test('a second setup adds beside what is there and keeps the token, unknown keys and other keys', async () => {
  const home = homeWith({ ...validConfig(), notes: 'mine' });
  const { code } = await setup(['--upstream', 'openai', '--key-env', 'OPENAI_API_KEY'], { home });
  expect(code).toBe(0);
  const config = configIn(home);
  expect(config['notes']).toBe('mine');
  expect(config.localToken).toBe(LOCAL_TOKEN);
  expect(config.upstreams.map(({ name, apiStyle }) => `${name} ${apiStyle}`)).toEqual([
    'anthropic anthropic_messages',
    'openai openai_responses',
    'openai openai_chat_completions',
  ]);
  expect(config.upstreams[0]?.['providerKey']).toBe(PROVIDER_KEY);
});

test('editing an upstream changes only what is said', async () => {
  const home = homeWith(validConfig());
  const args = [
    '--upstream',
    'anthropic',
    '--base-url',
    'https://eu.example.com',
    '--auth',
    'bearer',
  ];
  expect((await setup(args, { home })).code).toBe(0);
  expect(configIn(home).upstreams).toEqual([
    {
      name: 'anthropic',
      apiStyle: 'anthropic_messages',
      baseUrl: 'https://eu.example.com',
      providerKey: PROVIDER_KEY,
      auth: 'bearer',
    },
  ]);
});

test('a key comes from stdin, and is in the file and nowhere else', async () => {
  const home = tempFolder();
  const args = ['--upstream', 'deepseek', '--key-stdin'];
  const { code, stdout, stderr } = await setup(args, { home, input: `${PROVIDER_KEY}\n` });
  expect(code).toBe(0);
  expect(stdout + stderr).not.toContain('CANARY');
  expect(configIn(home).upstreams[0]?.['providerKey']).toBe(PROVIDER_KEY);
  for (const input of [
    '',
    '  \n',
    'two words',
    `${PROVIDER_KEY}\n${PROVIDER_KEY}`,
    'x'.repeat(9000),
  ]) {
    const again = await setup(args, { home, input });
    expect(again.code).toBe(1);
    expect(again.stderr).toContain('stdin held');
    expect(again.stderr).not.toContain('CANARY');
  }
});

test('R29: there is no flag that takes a key, and trying one does not repeat it', async () => {
  const home = tempFolder();
  const tries = [
    ['--key', PROVIDER_KEY],
    [`--key=${PROVIDER_KEY}`],
    [`--api-key=${PROVIDER_KEY}`],
    [`--key-env`, PROVIDER_KEY],
    [`-k${PROVIDER_KEY}`],
    [`--${PROVIDER_KEY}`],
    [PROVIDER_KEY],
    ['--upstream', PROVIDER_KEY],
    ['--port', PROVIDER_KEY],
    ['--api-style', PROVIDER_KEY],
    ['--auth', PROVIDER_KEY],
    ['--remove', PROVIDER_KEY],
    ['--base-url', `https://${PROVIDER_KEY}@example.com`],
  ];
  for (const args of tries) {
    const { code, stdout, stderr } = await setup(['--upstream', 'anthropic', ...args], { home });
    expect([1, 2]).toContain(code);
    expect(stdout).toBe('');
    expect(stderr).not.toContain('CANARY');
  }
  const { stderr } = await setup([`--key=${PROVIDER_KEY}`], { home });
  expect(stderr).toContain('--key-env or --key-stdin');
});

test('every well-known provider can be set up, and a local one needs no key', async () => {
  const home = tempFolder();
  const names = ['anthropic', 'openrouter', 'deepseek', 'groq', 'mistral', 'xai'];
  for (const name of names) {
    const args = ['--upstream', name, '--key-env', 'SOME_KEY', '--replace'];
    expect((await setup(args, { home })).code).toBe(0);
  }
  expect((await setup(['--upstream', 'ollama', '--replace'], { home })).code).toBe(0);
  expect(configIn(home).upstreams.at(-1)).toEqual({
    name: 'ollama',
    apiStyle: 'openai_chat_completions',
    baseUrl: 'http://127.0.0.1:11434/v1',
    auth: 'none',
    allowPrivate: true,
  });
});

test('a provider of its own needs address and style', async () => {
  const home = tempFolder();
  const base = ['--upstream', 'work', '--key-env', 'WORK_KEY'];
  expect((await setup(base, { home })).code).toBe(2);
  const url = ['--base-url', 'http://10.0.0.5:8000/v1', '--api-style', 'openai_chat_completions'];
  const refused = await setup([...base, ...url], { home });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('upstreams[0].baseUrl: expected https://');
  expect((await setup([...base, ...url, '--allow-private'], { home })).code).toBe(0);
  expect(configIn(home).upstreams[0]).toMatchObject({ name: 'work', auth: 'bearer' });
});

test('an API style that is taken is not taken over without --replace', async () => {
  const home = tempFolder();
  await setup(['--upstream', 'openai', '--key-env', 'OPENAI_API_KEY'], { home });
  const groq = ['--upstream', 'groq', '--key-env', 'GROQ_API_KEY'];
  const refused = await setup(groq, { home });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('openai already serves openai_chat_completions');
  expect(refused.stderr).toContain('--replace');
  expect((await setup([...groq, '--replace'], { home })).code).toBe(0);
  expect(configIn(home).upstreams.map(({ name, apiStyle }) => `${name} ${apiStyle}`)).toEqual([
    'openai openai_responses',
    'groq openai_chat_completions',
  ]);
});

test('a provider is removed by its name, and an unknown name says which there are', async () => {
  const home = homeWith(validConfig());
  const unknown = await setup(['--remove', 'openai'], { home });
  expect(unknown.code).toBe(1);
  expect(unknown.stderr).toContain('Configured upstreams: anthropic.');
  const removed = await setup(['--remove', 'anthropic'], { home });
  expect(removed.code).toBe(0);
  expect(removed.stderr).toContain('at least one upstream');
  expect(configIn(home).upstreams).toEqual([]);
});

test('settings of the proxy are written; a wrong one is wrong usage and writes nothing', async () => {
  const home = homeWith(validConfig());
  const args = ['--port', '9000', '--memory-mode', 'read', '--compression-mode', 'shadow'];
  const more = ['--input-budget', '100', '--recalled-tokens-max', '50', '--host', '::1'];
  expect((await setup([...args, ...more], { home })).code).toBe(0);
  expect(configIn(home).proxy).toEqual({
    port: 9000,
    memoryMode: 'read',
    compressionMode: 'shadow',
    inputBudget: 100,
    recalledTokensMax: 50,
    host: '::1',
  });
  const wrong = await setup(['--port', '1', '--memory-mode', 'all', '--host', '0.0.0.0'], { home });
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain('proxy.memoryMode (--memory-mode)');
  expect(wrong.stderr).toContain('proxy.host (--host)');
  expect(configIn(home).proxy['port']).toBe(9000);
});

test('another port names the files of clients that have the earlier one', async () => {
  const home = homeWith(validConfig());
  mkdirSync(join(home, 'bin'));
  writeFileSync(join(home, 'bin/claude'), '#!/bin/sh\n', { mode: 0o755 });
  const env = { PATH: `${join(home, 'bin')}:${process.env['PATH'] ?? ''}` };
  await runHere(['connect', 'claude', '--yes'], { home, env });
  const same = await setup(['--memory-mode', 'read'], { home });
  expect(same.stderr).not.toContain('earlier address');
  const moved = await setup(['--port', '9000'], { home });
  const settings = join(home, '.claude/settings.json');
  expect(moved.stderr).toContain(`${settings} names the earlier address of svc.`);
  expect(moved.stderr).toContain('svc connect CLIENT');
});

test('variables of the shell are not written into the file', async () => {
  const home = homeWith(validConfig());
  expect((await setup([], { home, env: { SVC_PORT: '1', SVC_HOST: 'wrong' } })).code).toBe(0);
  expect(configIn(home).proxy).toEqual({ port: 8765 });
});

test('R28: setup repairs modes and says so', async () => {
  const home = homeWith(validConfig());
  chmodSync(folderIn(home), 0o755);
  chmodSync(join(folderIn(home), 'config.json'), 0o644);
  const { code, stderr } = await setup([], { home });
  expect(code).toBe(0);
  expect(stderr.match(/Made private/g)).toHaveLength(2);
  expect(lstatSync(folderIn(home)).mode & 0o777).toBe(0o700);
  expect(lstatSync(join(folderIn(home), 'config.json')).mode & 0o777).toBe(0o600);
});

test('R28: a linked file and a linked folder are refused with what to do', async () => {
  const home = tempFolder();
  const target = join(home, 'target.json');
  writeFileSync(target, '{}');
  mkdirSync(folderIn(home), { recursive: true, mode: 0o700 });
  symlinkSync(target, join(folderIn(home), 'config.json'));
  const file = await runHere(ANTHROPIC, { home });
  expect([file.code, file.stdout]).toEqual([1, '']);
  expect(file.stderr).toContain('symbolic link');
  expect(readFileSync(target, 'utf8')).toBe('{}');
  const elsewhere = join(home, 'elsewhere');
  mkdirSync(elsewhere);
  symlinkSync(elsewhere, join(home, 'link'));
  const folder = await runHere(ANTHROPIC, { home, env: { SVC_CONFIG_HOME: join(home, 'link') } });
  expect(folder.code).toBe(1);
  expect(readdirSync(elsewhere)).toEqual([]);
});

// Root may write everywhere, so the program runs as nobody there.
const uid = process.getuid?.() === 0 ? 65_534 : undefined;

test('a folder that cannot be written is one message with what to do', async () => {
  const home = tempFolder();
  const folder = join(home, 'svc');
  mkdirSync(folder, { mode: 0o500 });
  if (uid !== undefined) {
    const { chownSync } = await import('node:fs');
    chownSync(home, uid, uid);
    chownSync(folder, uid, uid);
  }
  const options = { home, env: { SVC_CONFIG_HOME: folder }, ...(uid === undefined ? {} : { uid }) };
  const { code, stderr } = await runCli(ANTHROPIC, options);
  expect(code).toBe(1);
  expect(stderr).toContain('EACCES');
  expect(stderr).toContain('writable');
  expect(stderr.trim().split('\n')).toHaveLength(2);
  expect(readdirSync(folder)).toEqual([]);
});

test('a broken file is not edited, and all that is wrong is said', async () => {
  for (const broken of ['{', '[]', '{"upstreams": {}}', '{"version": 2}', '{"proxy": 1}']) {
    const home = homeWith(broken);
    const { code } = await runHere(ANTHROPIC, { home });
    expect(code).toBe(1);
    expect(readFileSync(join(folderIn(home), 'config.json'), 'utf8')).toBe(broken);
  }
  const config = { ...validConfig(), proxy: { port: -1, memoryMode: 'x' }, localToken: 1 };
  const { code, stderr } = await setup(['--input-budget', '5'], { home: homeWith(config) });
  expect(code).toBe(1);
  expect(stderr.match(/^svc: /gm)).toHaveLength(3);
});

test('without --yes setup says what it needs', async () => {
  const { code, stderr } = await runHere(['setup'], { home: tempFolder() });
  expect(code).toBe(2);
  expect(stderr).toContain('--yes');
});

test('flags that belong to a provider need its name', async () => {
  const { code, stderr } = await setup(['--key-env', 'A'], { home: tempFolder() });
  expect(code).toBe(2);
  expect(stderr).toContain('--upstream');
});

test('a new provider without a key asks where it is', async () => {
  const home = tempFolder();
  const { code, stderr } = await setup(['--upstream', 'anthropic'], { home });
  expect(code).toBe(2);
  expect(stderr).toContain('--key-env ANTHROPIC_API_KEY');
  const env = { ANTHROPIC_API_KEY: PROVIDER_KEY };
  expect((await setup(['--upstream', 'anthropic'], { home, env })).code).toBe(0);
  expect(configIn(home).upstreams[0]?.['providerKey']).toEqual({ env: 'ANTHROPIC_API_KEY' });
});

test('T5: nothing is read from the current folder', async () => {
  const home = homeWith(validConfig());
  const cwd = tempFolder();
  writeFileSync(join(cwd, 'config.json'), JSON.stringify({ ...validConfig(), localToken: 'x' }));
  writeFileSync(join(cwd, '.env'), 'SVC_PORT=1\nANTHROPIC_API_KEY=x\n');
  const { stdout } = await runHere(['config', 'token'], { home, cwd });
  expect(stdout).toBe(`${LOCAL_TOKEN}\n`);
  const relative = await runHere(['config', 'token'], { home, cwd, env: { SVC_CONFIG_HOME: '.' } });
  expect([relative.code, relative.stdout]).toEqual([1, '']);
});

test('a provider of the catalog needs no address; what is in no catalog says what to give', async () => {
  const home = tempFolder();
  const args = ['--upstream', 'fireworks-ai', '--key-env', 'FIREWORKS_API_KEY'];
  expect((await setup(args, { home })).code).toBe(0);
  expect(configIn(home).upstreams).toEqual([
    {
      name: 'fireworks-ai',
      apiStyle: 'openai_chat_completions',
      baseUrl: expect.stringMatching(/^https:\/\/api\.fireworks\.ai\//),
      auth: 'bearer',
      providerKey: { env: 'FIREWORKS_API_KEY' },
    },
  ]);
  const gateway = ['--upstream', 'merge-gateway', '--key-env', 'K'];
  const unclear = await setup(gateway, { home });
  expect(unclear).toMatchObject({ code: 2 });
  expect(unclear.stderr).toContain('Which API does merge-gateway serve? Give --api-style.');
  expect((await setup([...gateway, '--api-style', 'anthropic_messages'], { home })).code).toBe(0);
  for (const name of ['databricks', 'nobody-has-it']) {
    const unknown = await setup(['--upstream', name, '--key-env', 'K'], { home });
    expect(unknown).toMatchObject({ code: 2 });
    expect(unknown.stderr).toContain('give --base-url and --api-style');
  }
});

test('a hosted memory is set by flags, its key by a variable or from stdin, and taken back', async () => {
  const home = homeWith(validConfig());
  const url = ['--memory', 'hosted', '--memory-url', 'https://memory.example.com'];
  const missing = await setup(url, { home });
  expect([missing.code, missing.stderr.includes('--service-key-env')]).toEqual([2, true]);
  expect((await setup([...url, '--service-key-env', 'SVC_SERVICE_KEY'], { home })).code).toBe(0);
  expect(configIn(home)['memory']).toEqual({
    kind: 'hosted',
    baseUrl: 'https://memory.example.com',
    serviceKey: { env: 'SVC_SERVICE_KEY' },
  });
  // The name begins as those of settings do, and is none.
  const again = ['--service-key-env', 'SVC_SERVICE_KEY'];
  const named = await setup(again, { home, env: { SVC_SERVICE_KEY: 'CANARY-of-a-service' } });
  expect(named.stderr).not.toContain('is not set in this shell');
  expect((await setup(again, { home })).stderr).toContain('$SVC_SERVICE_KEY is not set');
  const mistyped = await setup(['--service-key-stdin'], { home, input: 'svc_live_CANARY\n' });
  expect([mistyped.code, mistyped.stderr]).toEqual([1, expect.stringContaining('checksum')]);
  const typed = await setup(['--service-key-stdin'], { home, input: 'CANARY-of-a-service\n' });
  expect(typed.code).toBe(0);
  expect(mistyped.stdout + mistyped.stderr).not.toContain('CANARY');
  expect(typed.stdout + typed.stderr).not.toContain('CANARY');
  expect(configIn(home)['memory']).toMatchObject({ serviceKey: 'CANARY-of-a-service' });
  const both = await setup(['--key-stdin', '--service-key-stdin', '--upstream', 'openai'], {
    home,
  });
  expect(both.code).toBe(2);
  expect((await setup(['--memory', 'embedded'], { home })).code).toBe(0);
  expect(configIn(home)['memory']).toEqual({ kind: 'embedded' });
  expect((await setup(['--memory-url', 'https://x.example.com'], { home })).code).toBe(2);
});

test('a change that a running proxy uses only after a restart says so, and no other change does', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: await freePort() } });
  const place = ['--memory', 'hosted', '--memory-url', 'https://memory.example.com'];
  const key = ['--service-key-stdin'];
  const restart = 'svc stop && svc start --detach';
  const alone = await setup([...place, ...key], { home, input: 'CANARY-one\n' });
  expect([alone.code, alone.stderr]).toEqual([0, expect.not.stringContaining(restart)]);
  await setup(['--memory', 'embedded'], { home });
  expect(await runCli(['start', '--detach'], { home })).toMatchObject({ code: 0 });
  onTestFinished(async () => void (await runHere(['stop'], { home })));
  const moved = await setup([...place, ...key], { home, input: 'CANARY-one\n' });
  expect([moved.code, moved.stderr]).toEqual([0, expect.stringContaining(restart)]);
  const renewed = await setup(key, { home, input: 'CANARY-two\n' });
  expect([renewed.code, renewed.stderr]).toEqual([0, expect.stringContaining(restart)]);
  const mode = await setup(['--memory-mode', 'read'], { home });
  expect([mode.code, mode.stderr]).toEqual([0, expect.not.stringContaining(restart)]);
});
