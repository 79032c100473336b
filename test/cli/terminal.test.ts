import { once } from 'node:events';
import { readFileSync } from 'node:fs';
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
import { writeCatalogCache } from '../../src/adapters/catalog/catalog.ts';
import { parseEntries } from '../../src/core/settings/catalog-entries.ts';
import { BIN, runHere, tempFolder } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { screen } from '../support/screen.ts';
import { missingTmux, openTmux, type TmuxSession } from '../support/tmux.ts';
import { treeOf, usedHome } from '../support/used-home.ts';

// Each step waits for a screen, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 });

const KEY = 'sk-work-CANARY-0123456789abcdef';
const SVC = `'${process.execPath}' '${BIN}'`;
const missing = missingTmux();

beforeAll(() => {
  if (missing !== undefined) process.stderr.write(`SKIPPED ALOUD: ${missing}\n`);
});

test('a terminal that does not know its size has no narrow lines', () => {
  const { terminal, stderr } = screen(0);
  terminal.note('svc is not running. Start it with: svc start');
  expect(stderr()).toBe('svc is not running. Start it with: svc start\n');
  expect([terminal.columns(80), terminal.noteColumns(80)]).toEqual([80, 80]);
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
    const first = openSetup(home, {
      environment: { WORK_KEY: 'sk-wrong-CANARY-0123456789abcdef' },
    });
    await describeWork(first, provider.url);
    first.type('$WORK_KEY');
    await first.shows('work: the provider refuses the key (401).');
    await first.shows('❯ Give the key again');
    first.press('Enter');
    await first.asks('The key of work:');
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
    await again.shows('work: nothing listens at that address (ECONNREFUSED).');
    await again.shows('❯ Keep it anyway');
    again.press('Enter');
    await changePort(again, '0', '18765');
    await again.shows('Write ');
    again.press('Enter');
    await again.shows('ended with 0');
    const config = readFileSync(join(home, '.config/svc/config.json'), 'utf8');
    expect(config).toBe(before.replace('"port": 0', '"port": 18765'));
  });

  test.each(['C-c', 'C-d'])(
    'a question that is left with %s means no, and svc says so',
    async (key) => {
      const home = homeWith(validConfig());
      const forget = 'memory forget --search walrus';
      const tmux = openTmux({ command: `${SVC} ${forget}; echo "ended with $?"; sleep 60`, home });
      await tmux.shows('matches these words?');
      tmux.press(key);
      await tmux.shows('Nothing was forgotten.');
      await tmux.shows('ended with 130');
    },
  );

  test.each([60, 120])(
    'at %i columns: from nothing to a wired client in seven answers',
    async (columns) => {
      const { home, settings } = await nothingYet(columns);
      const terminal = openSetup(home, settings);
      await giveAnswers(terminal, SEVEN_ANSWERS.length);
      await terminal.shows('ended with 0');
      expect(terminal.screen()).toMatch(/^Next: claude$/m);
      expect(terminal.screen()).not.toContain('CANARY');
      expect(readFileSync(join(home, '.claude/settings.json'), 'utf8')).toContain('apiKeyHelper');
      const { stdout } = await runHere(['memory', 'list', '--json'], { home });
      expect(JSON.parse(stdout)).not.toEqual([]);
      expectWholeWords(terminal.screen(), columns);
    },
  );

  // test/cli/wizard.test.ts leaves at more of them, without a terminal.
  test('Ctrl-C at the first question, at a key and at the last one writes nothing', async () => {
    const { home, settings } = await nothingYet(60);
    const before = treeOf(home);
    for (const stop of [0, 1, SEVEN_ANSWERS.length - 1]) {
      const left = openSetup(home, settings);
      await giveAnswers(left, stop);
      left.press('C-c');
      await left.shows('ended with 130');
      expect(left.screen()).toContain('nothing was written');
      expect(treeOf(home)).toEqual(before);
      left.close();
    }
  });
});

type Step = readonly [question: string, reply: (terminal: TmuxSession) => Promise<void> | void];
const enter = (terminal: TmuxSession): void => terminal.press('Enter');

/** Each is one answer; the last one writes. */
const SEVEN_ANSWERS: readonly Step[] = [
  [
    'Which provider?',
    async (terminal) => {
      terminal.type('workplace', false);
      await terminal.shows('❯ workplace');
      terminal.press('Enter');
    },
  ],
  ['The key of workplace:', (terminal) => terminal.type(KEY)],
  ['Where should memories be stored?', enter],
  ['Cache tools and system prompt', enter],
  ['Should Claude Code use svc', enter],
  ['Import 1 session', enter],
  ['Write ', enter],
];

/** A home with sessions and a client in it, and none of svc. */
async function nothingYet(columns: number): Promise<{ home: string; settings: SetupScreen }> {
  const provider = await startProvider();
  const { home, environment } = usedHome();
  await keepCatalog(home, provider.url);
  const path = `${environment['PATH'] ?? ''}:/usr/bin:/bin`;
  return { home, settings: { environment: { PATH: path }, columns } };
}

/** Answers so many questions, and waits for the next one. */
async function giveAnswers(terminal: TmuxSession, answers: number): Promise<void> {
  for (const [question, reply] of SEVEN_ANSWERS.slice(0, answers)) {
    await terminal.asks(question);
    await reply(terminal);
  }
  const next = SEVEN_ANSWERS[answers];
  if (next !== undefined) await terminal.asks(next[0]);
}

/** A line that fills the screen was broken by the terminal, which breaks in the middle of a word. */
function expectWholeWords(shown: string, columns: number): void {
  const lines = shown.split('\n');
  const broken = lines.filter((line, index) => {
    const next = lines[index + 1] ?? '';
    const isPath = /\S{40}/.test(line);
    return line.length === columns && /\w$/.test(line) && /^\w/.test(next) && !isPath;
  });
  expect(broken).toEqual([]);
}

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

interface SetupScreen {
  readonly environment?: Readonly<Record<string, string>>;
  readonly columns?: number;
}

function openSetup(home: string, { environment = {}, columns }: SetupScreen = {}): TmuxSession {
  const command = `${SVC} setup; echo "ended with $?"; sleep 60`;
  // Nobody's catalog is asked, unless a test has one.
  const variables = { SVC_CATALOG_URL: 'off', ...environment };
  return openTmux({ command, home, environment: variables, ...(columns && { columns }) });
}

/** The catalog as a setup of today left it, with one provider more, on this machine. */
async function keepCatalog(home: string, api: string): Promise<void> {
  const path = join(import.meta.dirname, '../../src/adapters/catalog/catalog-snapshot.json');
  const snapshot: unknown = JSON.parse(readFileSync(path, 'utf8'));
  const known = parseEntries(snapshot) ?? {};
  const workplace = {
    name: 'Workplace',
    env: ['WORKPLACE_KEY'],
    api,
    npm: '@ai-sdk/anthropic',
    models: [],
    facts: {},
  };
  const catalog = { entries: { ...known, workplace }, etag: '', checkedAt: Date.now() };
  await writeCatalogCache(join(home, '.cache/svc'), catalog);
}

async function driveWizard(home: string, url: string): Promise<string> {
  const terminal = openSetup(home);
  await describeWork(terminal, url);
  terminal.type(KEY);
  await terminal.shows('ok: work: the key is accepted, it lists 1 model.');
  await finishQuestions(terminal);
  return join(home, '.config/svc/config.json');
}

/** Up to the question where the key is. */
async function describeWork(terminal: TmuxSession, url: string): Promise<void> {
  await terminal.asks('Which provider?');
  terminal.type('another', false);
  await terminal.shows('❯ Another provider');
  terminal.press('Enter');
  await terminal.asks('A name for it in svc:');
  terminal.type('work');
  await terminal.asks('Its base URL');
  terminal.type(url);
  await terminal.asks('Which API does it serve?');
  await pressDownTo(terminal, '❯ Anthropic Messages');
  terminal.press('Enter');
  await terminal.asks('Allow http');
  terminal.press('Enter');
  await terminal.asks('How should svc send its key?');
  terminal.press('Enter');
  await terminal.asks('The key of work:');
}

/** From the first provider to the end, on any port. */
async function finishQuestions(terminal: TmuxSession): Promise<void> {
  await terminal.asks('Where should memories be stored?');
  terminal.press('Enter');
  await terminal.asks('Cache tools and system prompt');
  terminal.press('Enter');
  await terminal.asks('Write ');
  await pressDownTo(terminal, '❯ First add another provider or change');
  terminal.press('Enter');
  await changePort(terminal, '8765', '0');
  await terminal.asks('Write ');
  expect(terminal.screen()).toContain('key …cdef');
  expect(terminal.screen()).not.toContain('CANARY');
  terminal.press('Enter');
  await terminal.shows('ended with 0');
}

async function changePort(terminal: TmuxSession, old: string, port: string): Promise<void> {
  await terminal.asks('What do you want to change?');
  await pressDownTo(terminal, '❯ Address and port');
  terminal.press('Enter');
  await terminal.asks('On which port');
  for (const _ of old) terminal.press('BSpace');
  terminal.type(port);
  await terminal.asks('What do you want to change?');
  await pressDownTo(terminal, '❯ Finish');
  terminal.press('Enter');
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
  const { stdout } = await runHere(['status', '--json'], { home });
  const [proxy] = JSON.parse(stdout) as { url: string }[];
  const token = (await runHere(['config', 'token'], { home })).stdout.trim();
  const answer = await fetch(`${proxy?.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'claude-on-screen', messages: [{ role: 'user', content: 'x' }] }),
  });
  expect(answer.status).toBe(200);
  await terminal.shows('claude-on-screen  200');
  expect(terminal.screen()).not.toMatch(/CANARY|svc_local_/);
}
