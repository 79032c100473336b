import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  type TestContext,
  vi,
} from 'vitest';
import { BIN, runCli, tempFolder } from '../support/cli.ts';
import { missingTmux, openTmux, type TmuxSession } from '../support/tmux.ts';

// Each step waits for a screen, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

const KEY = 'sk-work-CANARY-0123456789abcdef';
const SVC = `'${process.execPath}' '${BIN}'`;
const missing = missingTmux();

beforeAll(() => {
  if (missing !== undefined) process.stderr.write(`SKIPPED ALOUD: ${missing}\n`);
});

describe('on a real terminal', () => {
  beforeEach((context: TestContext) => {
    if (missing !== undefined) context.skip(missing);
  });

  test('from the first question to a request that is served and shown', async () => {
    const provider = await startProvider();
    const home = tempFolder();
    const file = await driveWizard(home, provider.url);
    expect(readFileSync(file, 'utf8')).toContain(KEY);
    await driveStart(home);
  });

  test('a wrong key and a provider that is offline are told, and run again it changes what is there', async () => {
    const provider = await startProvider();
    const home = tempFolder();
    const first = openSetup(home, { WORK_KEY: 'sk-wrong-CANARY-0123456789abcdef' });
    await describeWork(first, provider.url);
    await pressDownTo(first, '❯ In another environment variable');
    first.press('Enter');
    await first.asks('The name of the variable:');
    first.type('WORK_KEY');
    await first.shows('work: the provider refuses the key (401).');
    await first.shows('❯ Say again');
    first.press('Enter');
    await first.asks('Where is the key of work?');
    first.press('Enter');
    await first.asks('The key:');
    first.type(KEY);
    await first.shows('ok: work: the key is accepted');
    await finishQuestions(first);
    expect(first.screen()).not.toContain('CANARY');
    // The provider is gone, and the person wants another port: nothing else changes.
    provider.close();
    const before = readFileSync(join(home, '.config/svc/config.json'), 'utf8');
    const again = openSetup(home);
    await again.asks('What do you want to change?');
    again.press('Enter');
    await again.asks('Which provider?');
    again.type('work', false);
    // The first of all is the configured one too: only what was searched for has this beside it, and
    // Enter is not heard while a search is under way.
    await again.shows('fireworks-ai');
    await again.shows('❯ work (configured)');
    again.press('Enter');
    await again.shows('❯ Keep: …cdef');
    again.press('Enter');
    await again.shows('work: nobody listens at that address (ECONNREFUSED).');
    await again.shows('❯ Keep it as it is');
    again.press('Enter');
    await again.asks('What do you want to change?');
    await pressDownTo(again, '❯ Address and port');
    again.press('Enter');
    await again.asks('On which port');
    again.press('BSpace');
    again.type('18765');
    await again.asks('What do you want to change?');
    await pressDownTo(again, '❯ Nothing more');
    again.press('Enter');
    await again.shows('Write ');
    again.press('Enter');
    await again.shows('ended with 0');
    const config = readFileSync(join(home, '.config/svc/config.json'), 'utf8');
    expect(config).toBe(before.replace('"port": 0', '"port": 18765'));
  });

  test('Ctrl-C leaves the questions with 130, and nothing is written', async () => {
    const home = tempFolder();
    const terminal = openSetup(home);
    await terminal.asks('Where shall memories be?');
    terminal.press('Enter');
    await terminal.asks('Which provider?');
    terminal.press('C-c');
    await terminal.shows('ended with 130');
    expect(terminal.screen()).toContain('nothing was written');
    expect(existsSync(join(home, '.config'))).toBe(false);
  });
});

/** A provider with one right key. */
async function startProvider(): Promise<{ url: string; close(): void }> {
  const provider = createServer((request, answer) => {
    const isRight = request.headers['x-api-key'] === KEY;
    answer.writeHead(isRight ? 200 : 401, { 'content-type': 'application/json' });
    answer.end(request.method === 'GET' ? '{"data":[{}]}' : '{"content":[]}');
  }).listen(0, '127.0.0.1');
  await once(provider, 'listening');
  onTestFinished(() => void provider.close());
  const { port } = provider.address() as AddressInfo;
  const close = (): void => {
    provider.close();
    provider.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, close };
}

function openSetup(home: string, variables: Record<string, string> = {}): TmuxSession {
  const command = `${SVC} setup; echo "ended with $?"; sleep 60`;
  // Nobody's catalog is asked.
  return openTmux({ command, home, environment: { SVC_CATALOG_URL: 'off', ...variables } });
}

async function driveWizard(home: string, url: string): Promise<string> {
  const terminal = openSetup(home);
  await describeWork(terminal, url);
  terminal.press('Enter');
  await terminal.asks('The key:');
  terminal.type(KEY);
  await terminal.shows('ok: work: the key is accepted, it lists 1 model.');
  await finishQuestions(terminal);
  return join(home, '.config/svc/config.json');
}

/** Up to the question where the key is. */
async function describeWork(terminal: TmuxSession, url: string): Promise<void> {
  await terminal.asks('Where shall memories be?');
  terminal.press('Enter');
  await terminal.asks('Which provider?');
  terminal.type('another', false);
  await terminal.shows('❯ Another provider');
  terminal.press('Enter');
  await terminal.asks('What shall it be called?');
  terminal.type('work');
  await terminal.asks('Its base URL');
  terminal.type(url);
  await terminal.asks('What does it speak?');
  await pressDownTo(terminal, '❯ Anthropic Messages');
  terminal.press('Enter');
  await terminal.asks('Allow http');
  terminal.press('Enter');
  await terminal.asks('How does it take its key?');
  terminal.press('Enter');
  await terminal.asks('Where is the key of work?');
}

/** From the first provider to the end, on any port. */
async function finishQuestions(terminal: TmuxSession): Promise<void> {
  await terminal.asks('Add another provider?');
  terminal.press('Enter');
  await terminal.asks('On which port');
  for (let count = 0; count < 4; count += 1) terminal.press('BSpace');
  terminal.type('0');
  await terminal.asks('Change modes and budgets?');
  terminal.press('Enter');
  await terminal.shows('Write ');
  expect(terminal.screen()).toContain('key …cdef');
  expect(terminal.screen()).not.toContain('CANARY');
  terminal.press('Enter');
  await terminal.shows('ended with 0');
}

/** One key, and then none before the screen has answered it: a busy machine draws late. */
async function pressDownTo(terminal: TmuxSession, entry: string): Promise<void> {
  for (let count = 0; count < 10; count += 1) {
    const before = terminal.screen();
    if (before.includes(entry)) return;
    terminal.press('Down');
    await terminal.changes(before);
  }
  await terminal.shows(entry);
}

async function driveStart(home: string): Promise<void> {
  const terminal = openTmux({ command: `${SVC} start`, home });
  await terminal.shows('svc listens on');
  const { stdout } = await runCli(['status', '--json'], { home });
  const [proxy] = JSON.parse(stdout) as { url: string }[];
  const token = (await runCli(['config', 'token'], { home })).stdout.trim();
  const answer = await fetch(`${proxy?.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'claude-on-screen', messages: [{ role: 'user', content: 'x' }] }),
  });
  expect(answer.status).toBe(200);
  await terminal.shows('claude-on-screen  200');
  expect(terminal.screen()).not.toMatch(/CANARY|svc_local_/);
}
