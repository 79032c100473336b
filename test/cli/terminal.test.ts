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
import { missingTmux, openTmux } from '../support/tmux.ts';

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
    const provider = createServer((request, answer) => {
      const isRight = request.headers['x-api-key'] === KEY;
      answer.writeHead(isRight ? 200 : 401, { 'content-type': 'application/json' });
      answer.end(request.method === 'GET' ? '{"data":[{}]}' : '{"content":[]}');
    }).listen(0, '127.0.0.1');
    await once(provider, 'listening');
    onTestFinished(() => void provider.close());
    const home = tempFolder();
    const { port } = provider.address() as AddressInfo;
    const file = await driveWizard(home, `http://127.0.0.1:${port}`);
    expect(readFileSync(file, 'utf8')).toContain(KEY);
    await driveStart(home);
  });

  test('Ctrl-C leaves the questions with 130, and nothing is written', async () => {
    const home = tempFolder();
    const terminal = openTmux({ command: `${SVC} setup; echo "ended with $?"; sleep 60`, home });
    await terminal.shows('Which provider?');
    terminal.press('C-c');
    await terminal.shows('ended with 130');
    expect(terminal.screen()).toContain('nothing was written');
    expect(existsSync(join(home, '.config'))).toBe(false);
  });
});

async function driveWizard(home: string, url: string): Promise<string> {
  const terminal = openTmux({ command: `${SVC} setup; echo "ended with $?"; sleep 60`, home });
  await terminal.shows('Which provider?');
  terminal.type('another', false);
  await terminal.shows('❯ Another provider');
  terminal.press('Enter');
  await terminal.shows('What shall it be called?');
  terminal.type('work');
  await terminal.shows('Its base URL');
  terminal.type(url);
  await terminal.shows('What does it speak?');
  await pressDownTo(terminal, '❯ Anthropic Messages');
  terminal.press('Enter');
  await terminal.shows('Allow http');
  terminal.press('Enter');
  await terminal.shows('How does it take its key?');
  terminal.press('Enter');
  await terminal.shows('Where is the key of work?');
  terminal.press('Enter');
  await terminal.shows('The key:');
  terminal.type(KEY);
  await terminal.shows('ok: work: the key is accepted, it lists 1 model.');
  terminal.press('Enter');
  await terminal.shows('On which port');
  for (let count = 0; count < 4; count += 1) terminal.press('BSpace');
  terminal.type('0');
  await terminal.shows('Change modes and budgets?');
  terminal.press('Enter');
  await terminal.shows('Write ');
  expect(terminal.screen()).not.toContain('CANARY');
  expect(terminal.screen()).toContain('key …cdef');
  terminal.press('Enter');
  await terminal.shows('ended with 0');
  return join(home, '.config/svc/config.json');
}

async function pressDownTo(terminal: ReturnType<typeof openTmux>, entry: string): Promise<void> {
  for (let count = 0; count < 10 && !terminal.screen().includes(entry); count += 1) {
    terminal.press('Down');
    await new Promise((resolve) => setTimeout(resolve, 100));
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
