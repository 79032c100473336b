import { mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { VERSION } from '../../src/core/version.ts';
import {
  BIN,
  type CliOptions,
  type CliResult,
  runCli,
  runHere,
  runProgram,
  tempFolder,
} from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';

// Many processes on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

const COMMANDS = [
  ['setup'],
  ['doctor'],
  ['start'],
  ['run'],
  ['status'],
  ['stop'],
  ['connect'],
  ['disconnect'],
  ['uninstall'],
  ['demo'],
  ['ui'],
  ['print-config'],
  ['print-config', 'claude'],
  ['print-config', 'codex'],
  ['config'],
  ['config', 'token'],
  ['requests'],
  ['stats'],
  ['memory'],
  ['memory', 'list'],
  ['memory', 'search'],
  ['memory', 'get'],
  ['memory', 'forget'],
  ['mcp'],
  ['completion'],
];

/** Commands that only hold others. */
const GROUPS = ['print-config', 'config', 'memory'];

/** Commands with a bundle of their own, or with processes and streams of their own. */
const PROCESSES = new Set(['config', 'print-config', 'start', 'run', 'mcp']);

/** Starts a process only for commands that need one. */
function svc(args: readonly string[], options: CliOptions): Promise<CliResult> {
  return (PROCESSES.has(args[0] ?? '') ? runCli : runHere)(args, options);
}

// spec: 4.5-two-names, 9-package
test('the package has two names for one program, and the version is its own', async () => {
  const text = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8');
  expect(JSON.parse(text)).toMatchObject({
    name: 'svc-local-proxy',
    version: '0.1.2',
    bin: { svc: 'bin/svc.js', 'svc-local-proxy': 'bin/svc.js' },
  });
  expect(VERSION).toBe('0.1.2');
  const { stdout, code } = await runCli(['--version'], { home: tempFolder() });
  expect(code).toBe(0);
  // Two builds of one release have the same version, and a person who installs one sees which it is.
  expect(stdout).toMatch(/^0\.1\.2 \(build [\w-]{12}\)\n$/);
});

test('every command explains itself on stdout, and holds no secret in it', async () => {
  const home = homeWith(validConfig());
  const env = { ANTHROPIC_API_KEY: PROVIDER_KEY };
  for (const command of COMMANDS) {
    const { stdout, stderr, code } = await svc([...command, '--help'], { home, env });
    expect([stderr, code]).toEqual(['', 0]);
    expect(stdout).toMatch(/^Usage: svc /);
    expect(stdout).not.toContain('CANARY');
    expect(stdout).not.toContain(LOCAL_TOKEN);
    if (GROUPS.includes(command.join(' '))) continue;
    expect([command, stdout]).toEqual([command, expect.stringContaining('Examples:')]);
  }
  const { stdout } = await svc(['setup', '--help'], { home });
  expect(stdout).not.toMatch(/--key[ ,=]/);
  expect(stdout).toContain('Examples:');
});

test('the help of svc fits on a screen, and lists the commands of a person in groups', async () => {
  const { stdout, code } = await runCli(['--help'], { home: tempFolder() });
  const lines = stdout.trimEnd().split('\n');
  expect([code, lines.length <= 30]).toEqual([0, true]);
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  const listed = lines.flatMap((line) => /^ {2}([a-z-]+) {2,}\S/.exec(line)?.[1] ?? []);
  const people = ['run', 'ui', 'status', 'stats', 'memory', 'setup', 'connect', 'disconnect'];
  const further = [
    'doctor',
    'uninstall',
    'start',
    'stop',
    'requests',
    'quota',
    'cache',
    'demo',
    'help',
  ];
  expect(listed).toEqual(expect.arrayContaining([...people, ...further]));
  expect(listed.length).toBeLessThanOrEqual(17);
  expect(stdout).toMatch(/For programs: .*mcp.*config token/);
});

test('svc help prints the help of a command or a page of the package, and names the pages otherwise', async () => {
  const home = tempFolder();
  const [bare, command, page, unknown] = [
    await svc(['help'], { home }),
    await svc(['help', 'memory', 'get'], { home }),
    await svc(['help', 'modes'], { home }),
    await svc(['help', '../package'], { home }),
  ];
  expect(bare.stdout).toContain('Usage: svc COMMAND');
  expect(command.stdout).toContain('svc memory get [options] <ref>');
  expect(page.stdout).toMatch(/^# Modes and headers\n/);
  expect([unknown.code, unknown.stdout]).toEqual([2, '']);
  expect(unknown.stderr).toContain('Pages: claude-code, ');
});

test('commands of earlier versions are gone', async () => {
  for (const words of [
    ['top'],
    ['unit', 'install'],
    ['explain', 'recalled'],
    ['memory', 'show', 'm_x'],
    ['memory', 'stale'],
  ]) {
    // oxlint-disable-next-line no-await-in-loop -- One process after the other.
    const { code } = await svc(words, { home: tempFolder() });
    expect([words, code]).toEqual([words, 2]);
  }
});

test('wrong usage is exit 2, on stderr, with a proposal where there is one', async () => {
  const home = tempFolder();
  const cases: [string[], string][] = [
    [[], 'Which command?'],
    [['strat'], 'Did you mean start?'],
    [['start', '--prot', '1'], 'Did you mean --port?'],
    [['memory', 'add', '- is a dash'], 'Text that begins with - needs -- before it.'],
    [['memory'], 'Which command?'],
    [['memory', 'get'], "missing required argument 'ref'"],
    [['config', 'token', 'x'], 'too many arguments'],
    [['requests', '--limit', '0'], '--limit'],
    [['memory', 'list', '--limit', '1001'], '--limit'],
    [['memory', 'get', 'm_a', '--lines', '3-2'], '--lines'],
    [['memory', 'forget'], 'Say what to forget'],
    [['memory', 'forget', '--space', 'a'], '--yes'],
  ];
  for (const [args, told] of cases) {
    const { stdout, stderr, code } = await svc(args, { home });
    expect([args, code, stdout]).toEqual([args, 2, '']);
    expect(stderr).toContain(told);
  }
});

// spec: 4.5-config-token
test('config token prints the token and a line end', async () => {
  const { stdout, stderr, code } = await runCli(['config', 'token'], {
    home: homeWith(validConfig()),
  });
  expect([stdout, stderr, code]).toEqual([`${LOCAL_TOKEN}\n`, '', 0]);
});

test('config token needs neither a valid upstream nor its key', async () => {
  const config = { ...validConfig(), upstreams: [{ name: 'X', providerKey: { env: 'NOPE' } }] };
  const { stdout, code } = await runCli(['config', 'token'], { home: homeWith(config) });
  expect([stdout, code]).toEqual([`${LOCAL_TOKEN}\n`, 0]);
});

test('config token loads little code: no HTTP client, no database, no schema compiler', async () => {
  const coverage = mkdtempSync(join(tmpdir(), 'svc-coverage-'));
  const env = { NODE_V8_COVERAGE: coverage };
  await runCli(['config', 'token'], { home: homeWith(validConfig()), env });
  const [name = ''] = readdirSync(coverage);
  const { result } = JSON.parse(readFileSync(join(coverage, name), 'utf8')) as {
    result: { url: string }[];
  };
  const files = result.filter(({ url }) => url.startsWith('file:')).map(({ url }) => url);
  const bytes = files.reduce((sum, url) => sum + statSync(fileURLToPath(url)).size, 0);
  expect(files.map((url) => url.replace(/.*\/(?=bin|dist)/, ''))).toEqual([
    'bin/svc.js',
    'dist/quick/quick.cjs',
  ]);
  // commander is 35 kB of it; undici alone would be 500, conf 200, what changes clients' files 55.
  expect(bytes).toBeLessThan(130_000);
});

test('both bundles declare the commands for clients alike', async () => {
  const home = homeWith(validConfig());
  for (const path of ['print-config', 'config']) {
    const help = await runCli([path, '--help'], { home });
    const { stdout } = await svc(['completion', '--after', '--', path], { home });
    const names = stdout.split('\n').filter((word) => /^[^-]/.test(word));
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect(help.stdout).toMatch(new RegExp(`^  ${name} `, 'm'));
  }
});

test('R29: no command says a key, whatever is wrong', async () => {
  const good = validConfig();
  const wrong = { [PROVIDER_KEY]: 1, name: PROVIDER_KEY, providerKey: { env: PROVIDER_KEY } };
  const homes = [
    homeWith(good),
    homeWith(`{"providerKey": "${PROVIDER_KEY}"`),
    homeWith({ [PROVIDER_KEY]: 1, proxy: PROVIDER_KEY, upstreams: [PROVIDER_KEY, wrong] }),
  ];
  const env = {
    ANTHROPIC_API_KEY: PROVIDER_KEY,
    SVC_MEMORY_MODE: PROVIDER_KEY,
  };
  // A page and a demo start a proxy of their own.
  const harmless = COMMANDS.filter(([first = '']) => !['demo', 'ui'].includes(first));
  const commands = harmless.filter((args) => args.length > 1 || !GROUPS.includes(args[0] ?? ''));
  const lines = [...commands, ['doctor', '--json'], ['setup', '--yes'], ['memory', 'get', 'm_x']];
  for (const args of lines) {
    const results = await Promise.all(homes.map((home) => svc(args, { home, env })));
    for (const { stdout, stderr } of results) {
      expect(stdout).not.toContain('CANARY');
      expect(stderr).not.toContain('CANARY');
      expect(stderr).not.toContain(LOCAL_TOKEN);
    }
  }
});

test('a reader that goes early is no failure', async () => {
  const script = `'${process.execPath}' '${BIN}' --help | true; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await runProgram(['bash', '-c', script], { home: tempFolder() });
  expect([stdout, stderr]).toEqual(['0\n', '']);
});

test('what is not for a terminal has no colours', async () => {
  const { stdout, stderr } = await runCli(['doctor'], { home: tempFolder() });
  expect(stdout + stderr).not.toContain('\u001b');
});

test('completion is for the shells that svc knows', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    expect((await svc(['completion', shell], { home: tempFolder() })).code).toBe(0);
  }
  expect((await svc(['completion', 'tcsh'], { home: tempFolder() })).code).toBe(2);
});
