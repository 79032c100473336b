import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, beforeEach, expect, onTestFinished, test, type TestContext, vi } from 'vitest';
import { BIN, runCli, runHere, SERVICE_BIN } from '../support/cli.ts';
import { LOCAL_TOKEN, validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';
import { missingTmux, openTmux } from '../support/tmux.ts';

// Some sixty commands on a machine that may be busy.
vi.setConfig({ testTimeout: 240_000 });

const COLUMNS = 60;
const SPACE = 'project/a-name-that-takes-some-forty-characters';
const missing = missingTmux();

beforeAll(() => {
  if (missing !== undefined) process.stderr.write(`SKIPPED ALOUD: ${missing}\n`);
});

beforeEach((context: TestContext) => {
  if (missing !== undefined) context.skip(missing);
});

/** A home with memories, requests and a proxy that runs. */
async function usedPlace() {
  const provider = createServer((incoming, answer) => {
    incoming.resume();
    answer.writeHead(200, { 'content-type': 'application/json' });
    const content = [{ type: 'text', text: 'Noted: the gateway of the walrus shop is on 6431.' }];
    const usage = { input_tokens: 40, output_tokens: 20 };
    answer.end(JSON.stringify({ type: 'message', role: 'assistant', content, usage }));
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  onTestFinished(() => void provider.close());
  const config = validConfig() as { upstreams: object[] };
  const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const upstreams = config.upstreams.map((one) => ({ ...one, baseUrl, allowPrivate: true }));
  const port = await freePort();
  const home = homeWith({ ...config, upstreams, proxy: { port } });
  mkdirSync(join(home, '.claude'));
  const at = { home };
  const fact =
    'The gateway of the walrus shop listens on port 6431, and the mailer on the one below.';
  await runHere(['memory', 'add', fact, '--space', SPACE], at);
  await runHere(['memory', 'add', fact, '--space', 'global'], at);
  await runCli(['start', '--detach'], at);
  onTestFinished(async () => void (await runHere(['stop'], at)));
  for (const text of ['Which port does the gateway of the walrus shop listen on?', fact]) {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/messages`, {
      method: 'POST',
      headers: {
        'x-api-key': LOCAL_TOKEN,
        'content-type': 'application/json',
        'user-agent': 'claude-cli/2.1.329 (external, cli)',
        'x-svc-memory-space': SPACE,
      },
      body: JSON.stringify({
        model: 'claude-haiku-4-5',
        messages: [{ role: 'user', content: text }],
      }),
    });
    await answer.text();
  }
  const listed = JSON.parse((await runHere(['requests', '--json'], at)).stdout) as { id: string }[];
  return { home, request: listed[0]?.id ?? '' };
}

const HELPED = [
  '',
  'setup',
  'doctor',
  'demo',
  'start',
  'run',
  'status',
  'stop',
  'requests',
  'stats',
  'statusline',
  'print-config',
  'print-config claude',
  'print-config codex',
  'print-config pi',
  'config token',
  'memory',
  'memory add',
  'memory list',
  'memory search',
  'memory get',
  'memory forget',
  'memory import',
  'memory export',
  'memory move',
  'memory spaces',
  'mcp',
  'connect',
  'disconnect',
  'completion',
  'uninstall',
  'service',
  'service init',
  'service keys',
  'service start',
  'service doctor',
  'service backup',
];

/** Each of them prints to a screen; commands that wait for something, and texts for machines, are left out. */
function commandsFor(request: string): readonly string[] {
  return [
    ...HELPED.map((name) => `${name} --help`),
    'status',
    'requests',
    `requests ${request}`,
    'requests req_none',
    'stats',
    'doctor --offline',
    'memory list',
    'memory search walrus',
    'memory spaces',
    'memory get m_nothing',
    'memory import --from claude-code',
    'setup --yes --upstream nobody-knows-this',
    'setup --yes --remove nobody',
    'setup --memory-mode wrong --yes',
    'start --port x',
    'run nothing',
    'run codex',
    'connect nothing',
    'uninstall --dry-run',
    'service status',
    'memory forget --space nothing-here --yes',
    'nonsense',
    'stop',
  ];
}

/** True when the edge of the screen is inside a word that fits on a line of its own. */
function hasBrokenWord(line: string): boolean {
  const words = [...line.matchAll(/\S+/g)];
  return words.some(({ index, 0: word }) => {
    const isOver = Math.floor(index / COLUMNS) !== Math.floor((index + word.length - 1) / COLUMNS);
    return isOver && word.length < COLUMNS - INDENT;
  });
}

/** The deepest indentation, behind which a word may have no room. */
const INDENT = 14;

/** What bin/svc.js starts from a bundle of its own; all others are in one program, which is loaded once. */
const OWN_BUNDLE = /^(?:start|config|print-config) /;

/** Stands before what each command printed. */
const MARK = 'command: ';

/**
 * Runs the built commands one after the other on its terminal. A start of Node for each would take most of the time, and
 * nothing depends on it: the program asks the terminal for its width when it prints.
 */
const driver = (commands: readonly string[]): string => `
import { spawnSync } from 'node:child_process';
// Each command listens for errors of the streams until its process ends.
for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(0);
const svc = await import(${JSON.stringify(builtProgram(BIN))});
const service = await import(${JSON.stringify(builtProgram(SERVICE_BIN))});
for (const command of ${JSON.stringify(commands)}) {
  console.log(${JSON.stringify(MARK)} + command);
  const words = command.split(' ').filter((word) => word !== '');
  process.argv[1] = words[0] === 'service' ? ${JSON.stringify(SERVICE_BIN)} : ${JSON.stringify(BIN)};
  if (${OWN_BUNDLE}.test(command)) spawnSync(process.execPath, [process.argv[1], ...words], { stdio: 'inherit' });
  else if (words[0] === 'service') await service.run(words.slice(1));
  else await svc.run(words);
}
console.log('all commands ended');
setInterval(() => {}, 60_000);
`;

function builtProgram(bin: string): string {
  return pathToFileURL(join(bin, '../../dist/main.js')).href;
}

test('no command breaks a word on a screen of 60 columns', async () => {
  const { home, request } = await usedPlace();
  const commands = commandsFor(request);
  const script = join(home, 'commands.mjs');
  writeFileSync(script, driver(commands));
  const command = `'${process.execPath}' '${script}'`;
  const terminal = openTmux({ command, home, columns: COLUMNS });
  await terminal.shows('all commands ended');
  const over: Record<string, readonly string[]> = {};
  const shown = terminal
    .wholeLines()
    .join('\n')
    .split(new RegExp(`^${MARK}`, 'm'))
    .slice(1);
  for (const [name = '', ...lines] of shown.map((text) => text.split('\n'))) {
    const broken = lines.filter(hasBrokenWord);
    if (broken.length > 0) over[name] = broken;
  }
  expect(over).toEqual({});
  expect(shown).toHaveLength(commands.length);
});
