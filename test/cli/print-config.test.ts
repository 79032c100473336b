import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { writeRunFile } from '../../src/adapters/processes/run-files.ts';
import { BIN, runCli, runProgram, tempFolder } from '../support/cli.ts';
import { LOCAL_TOKEN, validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { startProxyProcess } from '../support/proxy-process.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

function has(shell: string): boolean {
  return spawnSync(shell, ['-c', 'exit 0']).status === 0;
}

const NASTY = `a'b"c$(touch pwned)\`touch pwned\`;touch pwned&d\\e!f*g{h}~`;

const printVariables = `for n in ANTHROPIC_BASE_URL ANTHROPIC_API_KEY CLAUDE_CODE_GATEWAY_HINT_HEADERS NO_PROXY no_proxy; do printenv "$n"; done; ls`;

for (const shell of ['sh', 'dash', 'bash', 'zsh', 'ksh']) {
  test.runIf(has(shell))(`R30: eval in ${shell} sets what is meant and runs nothing`, async () => {
    const home = homeWith({ ...validConfig(), proxy: { port: 9123 } }, "a b'c$d/svc");
    const cwd = tempFolder();
    const env = { SVC_CONFIG_HOME: join(home, "a b'c$d/svc"), NO_PROXY: `${NASTY}, .corp` };
    const script = `eval "$('${process.execPath}' '${BIN}' print-config claude)"; ${printVariables}`;
    const { stdout } = await runProgram([shell, '-c', script], { home, cwd, env });
    // The list is split at blanks and commas, as its readers do.
    const list = `${NASTY.replace(/ /g, ',')},.corp,127.0.0.1,localhost`;
    expect(stdout.split('\n')).toEqual(['http://127.0.0.1:9123', LOCAL_TOKEN, '1', list, list, '']);
  });
}

// spec: 4.5-print-config-claude
test('R30: stdout is export lines and nothing else', async () => {
  const home = homeWith(validConfig());
  const { stdout, stderr, code } = await runCli(['print-config', 'claude'], { home });
  expect(code).toBe(0);
  expect(stdout).toBe(
    [
      `export ANTHROPIC_BASE_URL='http://127.0.0.1:8765'`,
      `export ANTHROPIC_API_KEY='${LOCAL_TOKEN}'`,
      `export CLAUDE_CODE_GATEWAY_HINT_HEADERS='1'`,
      `export NO_PROXY='127.0.0.1,localhost'`,
      `export no_proxy='127.0.0.1,localhost'`,
      '',
    ].join('\n'),
  );
  expect(stderr).toContain('--auth-token');
  expect(stderr).toContain("# export ENABLE_TOOL_SEARCH='true'");
  expect(stderr).not.toContain(LOCAL_TOKEN);
});

test('R30: line ends and control characters in the environment never reach stdout', async () => {
  const home = homeWith(validConfig());
  const env = { NO_PROXY: 'a\nexport EVIL=1\nb\u001bc', no_proxy: '*' };
  const { stdout } = await runCli(['print-config', 'claude'], { home, env });
  const lines = stdout.trimEnd().split('\n');
  for (const line of lines) expect(line).toMatch(/^export [A-Za-z_]+='[ -~]*'$/);
  expect(lines).toContain(`export NO_PROXY='a,export,EVIL=1,127.0.0.1,localhost'`);
  expect(lines).toContain(`export no_proxy='*'`);
});

test('the token goes into ANTHROPIC_AUTH_TOKEN when that is asked for', async () => {
  const home = homeWith(validConfig());
  const env = { ANTHROPIC_API_KEY: 'other' };
  const { stdout, stderr } = await runCli(['print-config', 'claude', '--auth-token'], {
    home,
    env,
  });
  expect(stdout).toContain(`export ANTHROPIC_AUTH_TOKEN='${LOCAL_TOKEN}'`);
  expect(stdout).not.toContain('ANTHROPIC_API_KEY');
  expect(stderr).toContain('unset it');
});

test('fish, PowerShell and JSON get their own form', async () => {
  const home = homeWith(validConfig());
  const run = async (...args: string[]) =>
    (await runCli(['print-config', 'claude', ...args], { home, env: { NO_PROXY: `a'\\b’` } }))
      .stdout;
  const fish = await run('--shell', 'fish');
  expect(fish).toContain(`set -gx ANTHROPIC_API_KEY '${LOCAL_TOKEN}'\n`);
  expect(fish).toContain(String.raw`set -gx NO_PROXY 'a\'\\b’,127.0.0.1,localhost'`);
  expect(await run('--shell', 'powershell')).toContain(`$env:NO_PROXY = 'a''\\b’’,127.0.0.1`);
  expect(await run('--shell', 'cmd')).toContain(`set "ANTHROPIC_API_KEY=${LOCAL_TOKEN}"\n`);
  expect(await run('--shell', 'cmd')).toContain(`set "NO_PROXY=a'\\b’,127.0.0.1,localhost"\n`);
  const { env } = JSON.parse(await run('--json')) as { env: Record<string, string> };
  expect(env['ANTHROPIC_BASE_URL']).toBe('http://127.0.0.1:8765');
  expect(env['NO_PROXY']).toBe(`a'\\b’,127.0.0.1,localhost`);
});

test.runIf(has('fish'))('the fish form is read by fish', async () => {
  const home = homeWith(validConfig());
  const script = `'${process.execPath}' '${BIN}' print-config claude --shell fish | source; printenv NO_PROXY`;
  const env = { NO_PROXY: NASTY.replace(/ /g, '') };
  const { stdout } = await runProgram(['fish', '-c', script], { home, env });
  expect(stdout).toBe(`${env.NO_PROXY},127.0.0.1,localhost\n`);
});

// spec: 4.4-v1-base, 4.5-print-config-codex
test('codex gets TOML with the provider, and no token', async () => {
  const home = homeWith({ ...validConfig(), proxy: { host: '::1', port: 9000 } });
  const { stdout, stderr, code } = await runCli(['print-config', 'codex'], { home });
  expect(code).toBe(0);
  expect(stdout).toBe(`model_provider = "svc"

[model_providers.svc]
name = "svc local proxy"
base_url = "http://[::1]:9000/v1"
wire_api = "responses"
env_key = "SVC_LOCAL_PROXY_TOKEN"
env_key_instructions = "export SVC_LOCAL_PROXY_TOKEN=\\"$(svc config token)\\""
supports_websockets = false
`);
  expect(stderr).toContain('No provider for openai_responses is configured');
});

test('codex can ask svc for the token, and is named OpenAI only where OpenAI answers', async () => {
  const home = homeWith(validConfig());
  const asked = await runCli(['print-config', 'codex', '--auth-command'], { home });
  expect(asked.stdout).toContain(
    '[model_providers.svc.auth]\ncommand = "svc"\nargs = ["config", "token", "--start"]',
  );
  expect(asked.stdout).not.toContain('env_key');
  const refused = await runCli(['print-config', 'codex', '--openai-name'], { home });
  expect([refused.code, refused.stdout]).toEqual([1, '']);
  const upstream = {
    name: 'openai',
    apiStyle: 'openai_responses',
    baseUrl: 'https://api.openai.com/v1',
    providerKey: 'sk-1',
  };
  const openai = homeWith({ ...validConfig(), upstreams: [upstream] });
  const named = await runCli(['print-config', 'codex', '--openai-name'], { home: openai });
  expect(named.stdout).toContain('name = "OpenAI"');
});

test('R30: on an error stdout is empty and the exit code is not 0', async () => {
  const cases: [unknown, string[], number][] = [
    [undefined, [], 1],
    [{ ...validConfig(), localToken: undefined }, [], 1],
    [{ ...validConfig(), proxy: { port: 0 } }, [], 1],
    [{ ...validConfig(), proxy: { port: 'x' } }, [], 1],
    [validConfig(), ['--shell', 'tcsh'], 2],
    [validConfig(), ['--nope'], 2],
  ];
  for (const client of ['claude', 'codex']) {
    for (const [config, args, code] of cases) {
      const home = config === undefined ? tempFolder() : homeWith(config);
      if (client === 'codex' && args[0] === '--shell') continue;
      const result = await runCli(['print-config', client, ...args], { home });
      expect([result.code, result.stdout]).toEqual([code, '']);
      expect(result.stderr).toMatch(/^svc: /);
    }
  }
});

test('the printed address follows the environment as start does', async () => {
  const home = homeWith(validConfig());
  const env = { SVC_PORT: '9555' };
  const { stdout } = await runCli(['print-config', 'claude'], { home, env });
  expect(stdout).toContain(`export ANTHROPIC_BASE_URL='http://127.0.0.1:9555'`);
});

test.each([
  ['proxy.port is 0', { port: 0 }],
  ['another port was given to svc start', { port: 9123 }],
])('it knows the port of the proxy that runs where %s', async (_, proxy) => {
  const home = homeWith({ ...validConfig(), proxy });
  const running = await startProxyProcess(home);
  const claude = await runCli(['print-config', 'claude', '--json'], { home });
  expect(JSON.parse(claude.stdout).env['ANTHROPIC_BASE_URL']).toBe(running.url);
  const codex = await runCli(['print-config', 'codex'], { home });
  expect(codex.stdout).toContain(`base_url = "${running.url}/v1"`);
});

test('T4: a process that does not prove to be ours is nowhere to send prompts to', async () => {
  const home = homeWith({ ...validConfig(), proxy: { port: 9123 } });
  const data = join(home, 'data');
  const stranger = createServer((_request, answer) => answer.end('{"service":"svc"}'));
  onTestFinished(() => void stranger.close());
  stranger.listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  const address = stranger.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const run = { pid: process.pid, host: '127.0.0.1', port, version: '0.1.2', startedAt: 1 };
  await writeRunFile(data, run);
  const env = { SVC_DATA_HOME: data };
  const { stdout } = await runCli(['print-config', 'claude'], { home, env });
  expect(stdout).toContain(`ANTHROPIC_BASE_URL='http://127.0.0.1:9123'`);
});
