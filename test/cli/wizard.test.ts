import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { screen as prompts } from '@inquirer/testing/vitest';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createUpstream } from '../../src/adapters/undici-upstream.ts';
import { wizard } from '../../src/cli/wizard.ts';
import { tempFolder } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { screen } from '../support/screen.ts';

vi.setConfig({ testTimeout: 30_000 });

const TYPED_KEY = 'sk-typed-CANARY-0123456789abcdef';

interface Session {
  readonly ended: Promise<number>;
  readonly notes: () => string;
  readonly config: () => Record<string, never> & { proxy: object; upstreams: object[] };
  readonly file: string;
}

function open(home: string, environment: Record<string, string> = {}): Session {
  // What an earlier session left on the screen is no question of this one.
  prompts.clear();
  const { terminal, stdout, stderr } = screen();
  const context = { environment: { HOME: home, ...environment }, terminal };
  const ended = wizard(context, { openUpstream: createUpstream, streams: {} });
  const file = join(home, '.config/svc/config.json');
  return {
    ended,
    notes: () => stdout() + stderr(),
    config: () => JSON.parse(readFileSync(file, 'utf8')) as ReturnType<Session['config']>,
    file,
  };
}

/** Waits until this question is asked; the screen is redrawn on its own time. */
async function asked(question: string): Promise<void> {
  await vi.waitFor(() => expect(prompts.getScreen()).toContain(question), { timeout: 15_000 });
}

async function answer(question: string, text = ''): Promise<void> {
  await asked(question);
  if (text !== '') prompts.type(text);
  prompts.keypress('enter');
}

/** Chooses the entry that this pattern fits. */
async function choose(question: string, entry: string): Promise<void> {
  await asked(question);
  const chosen = new RegExp(`^❯ .*${entry}`, 'm');
  for (let presses = 0; presses < 20 && !chosen.test(prompts.getScreen()); presses += 1) {
    prompts.keypress('down');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(prompts.getScreen()).toMatch(chosen);
  prompts.keypress('enter');
}

/** A provider with one right key. */
async function startProvider(): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((request, reply) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    const isRight = request.headers.authorization === `Bearer ${TYPED_KEY}`;
    reply.writeHead(isRight ? 200 : 401, { 'content-type': 'application/json' });
    reply.end(isRight ? '{"data":[{"id":"a"},{"id":"b"}]}' : '{"error":"SECRET-ECHO"}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, seen };
}

async function describeCustom(url: string): Promise<void> {
  await choose('Which provider?', 'Another provider');
  await answer('What shall it be called?', 'work');
  await answer('Its base URL', url);
  await choose('What does it speak?', 'OpenAI Chat Completions');
  await answer('Allow http to this machine');
  await choose('How does it take its key?', 'Bearer');
}

test('from nothing to a configuration: the key is tried, masked, and written once at the end', async () => {
  const provider = await startProvider();
  const home = tempFolder();
  const session = open(home);
  await describeCustom(provider.url);
  await choose('Where is the key', 'I type or paste it');
  await answer('The key:', TYPED_KEY);
  await answer('Add another provider?');
  expect(session.notes()).toContain('ok: work: the key is accepted, it lists 2 models.');
  await answer('On which port');
  await answer('Change modes and budgets?');
  await asked('Write ');
  expect(existsSync(session.file)).toBe(false);
  prompts.keypress('enter');
  expect(await session.ended).toBe(0);
  expect(session.config()).toMatchObject({
    version: 1,
    proxy: { host: '127.0.0.1', port: 8765, memoryMode: 'read-write' },
    upstreams: [
      {
        name: 'work',
        apiStyle: 'openai_chat_completions',
        baseUrl: provider.url,
        auth: 'bearer',
        allowPrivate: true,
        providerKey: TYPED_KEY,
      },
    ],
    localToken: expect.stringMatching(/^svc_local_/),
  });
  expect(statSync(session.file).mode & 0o777).toBe(0o600);
  expect(provider.seen).toEqual([`GET /v1/models Bearer ${TYPED_KEY}`]);
  expect(session.notes()).toContain('Provider   work, openai_chat_completions');
  expect(session.notes()).not.toContain('CANARY');
});

test('a wrong key is told, nothing that the provider said is repeated, and it can be typed again', async () => {
  const provider = await startProvider();
  const session = open(tempFolder());
  await describeCustom(provider.url);
  await choose('Where is the key', 'I type or paste it');
  await answer('The key:', 'sk-wrong-CANARY');
  await choose('What now?', 'Say again');
  expect(session.notes()).toContain('work: the provider refuses the key (401).');
  await choose('Where is the key', 'I type or paste it');
  await answer('The key:', TYPED_KEY);
  await asked('Add another provider?');
  expect(session.notes()).toContain('the key is accepted');
  expect(session.notes()).not.toMatch(/SECRET-ECHO|CANARY/);
  prompts.keypress({ name: 'c', ctrl: true });
  expect(await session.ended).toBe(130);
});

test('a provider that is offline is told as that, and may be kept', async () => {
  const session = open(tempFolder(), { WORK_KEY: TYPED_KEY });
  // Port 9 answers nobody.
  await describeCustom('http://127.0.0.1:9/v1');
  await choose('Where is the key', 'In another environment variable');
  await answer('The name of the variable:', 'WORK_KEY');
  await choose('What now?', 'Keep it as it is');
  expect(session.notes()).toContain('nobody listens at that address');
  await answer('Add another provider?');
  await answer('On which port');
  await answer('Change modes and budgets?');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.config().upstreams).toMatchObject([{ providerKey: { env: 'WORK_KEY' } }]);
});

test('left at any question with Ctrl-C: exit 130, and nothing is written', async () => {
  const steps: (() => Promise<void>)[] = [
    () => asked('Which provider?'),
    () => choose('Which provider?', 'anthropic'),
    () => choose('Where is the key', 'I type or paste it'),
  ];
  for (let count = 1; count <= steps.length; count += 1) {
    const home = tempFolder();
    const session = open(home);
    for (const step of steps.slice(0, count)) await step();
    await new Promise((resolve) => setTimeout(resolve, 50));
    prompts.keypress({ name: 'c', ctrl: true });
    expect(await session.ended).toBe(130);
    expect(session.notes()).toContain('nothing was written');
    expect(existsSync(join(home, '.config'))).toBe(false);
  }
});

test('run again it changes what is there, and keeps what nobody named', async () => {
  const config = { ...validConfig(), proxy: { port: 8765, recallMs: 200 }, extra: 1 };
  const session = open(homeWith(config));
  await choose('What do you want to change?', 'Address and port');
  await answer('On which port', '\b\b\b\b9123');
  await choose('What do you want to change?', 'Modes and budgets');
  await choose('What may svc do', 'read$');
  await choose('And with long requests?', 'passthrough');
  await answer('Shorten from how many');
  await answer('How many tokens may');
  await choose('What do you want to change?', 'Nothing more');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.config()).toEqual({
    ...config,
    proxy: { port: 9123, recallMs: 200, memoryMode: 'read', compressionMode: 'passthrough' },
  });
  expect(session.config()['localToken']).toBe(LOCAL_TOKEN);
  expect(session.notes()).toContain('key …8d9e');
  expect(session.notes()).not.toContain(PROVIDER_KEY);
});

test('a provider can be removed again, and No at the end writes nothing', async () => {
  const home = homeWith(validConfig());
  const before = readFileSync(join(home, '.config/svc/config.json'), 'utf8');
  const session = open(home);
  await choose('What do you want to change?', 'Remove a provider');
  await choose('Which one?', 'anthropic');
  await choose('What do you want to change?', 'Nothing more');
  await answer('Write ', 'n');
  expect(await session.ended).toBe(0);
  expect(session.notes()).toContain('Nothing was written.');
  expect(readFileSync(session.file, 'utf8')).toBe(before);
});

test('a port that another program has is not taken', async () => {
  const stranger = createServer((_, reply) => void reply.end('hello')).listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  onTestFinished(() => void stranger.close());
  const { port } = stranger.address() as AddressInfo;
  const session = open(homeWith(validConfig()));
  await choose('What do you want to change?', 'Address and port');
  await answer('On which port', `\b\b\b\b${port}`);
  await asked(`Another program listens on port ${port}`);
  prompts.keypress({ name: 'c', ctrl: true });
  expect(await session.ended).toBe(130);
});
