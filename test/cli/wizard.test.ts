import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { screen as prompts } from '@inquirer/testing/vitest';
import { expect, onTestFinished, test } from 'vitest';
import { tempFolder } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { FakeOperations } from '../support/fake-operations.ts';
import { homeWith } from '../support/home.ts';
import { treeOf, usedHome } from '../support/used-home.ts';
import { answer, asked, choose, find, open } from '../support/wizard-stage.ts';

const TYPED_KEY = 'sk-typed-CANARY-0123456789abcdef';

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
  await find('another', 'Another provider');
  await answer('A name for it in svc:', 'work');
  await answer('Its base URL', url);
  await choose('Which API does it serve?', 'OpenAI Chat Completions');
  await answer('Allow http for this provider');
  await choose('How should svc send its key?', 'Bearer');
}

// spec: 4.5-setup
test('from nothing to a configuration: the key is tried, masked, and written once at the end', async () => {
  const provider = await startProvider();
  const home = tempFolder();
  const session = open(home);
  await describeCustom(provider.url);
  await answer('The key of work:', TYPED_KEY);
  await answer('Where should memories be stored?');
  expect(session.notes()).toContain('ok: work: the key is accepted, it lists 2 models.');
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
  await answer('The key of work:', 'sk-wrong-CANARY');
  await choose('What now?', 'Give the key again');
  expect(session.notes()).toContain('work: the provider refuses the key (401).');
  await answer('The key of work:', TYPED_KEY);
  await asked('Where should memories be stored?');
  expect(session.notes()).toContain('the key is accepted');
  expect(session.notes()).not.toMatch(/SECRET-ECHO|CANARY/);
  prompts.keypress({ name: 'c', ctrl: true });
  expect(await session.ended).toBe(130);
});

test('a provider that is offline is told as that, and may be kept', async () => {
  const session = open(tempFolder(), { WORK_KEY: TYPED_KEY });
  // Port 9 answers nobody.
  await describeCustom('http://127.0.0.1:9/v1');
  await answer('The key of work:', '$WORK_KEY');
  await choose('What now?', 'Keep it anyway');
  expect(session.notes()).toContain('nothing listens at that address');
  await answer('Where should memories be stored?');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.config().upstreams).toMatchObject([{ providerKey: { env: 'WORK_KEY' } }]);
});

test('with a memory service Enter alone imports nothing', async () => {
  const url = await startService();
  const { home, environment } = usedHome();
  const session = open(home, { ...environment, SVC_SERVICE_KEY: TYPED_KEY });
  await choose('Which provider?', 'None: continue without a provider');
  await choose('Where should memories be stored?', 'With a memory service');
  await answer('Base URL of the memory service', url);
  await choose('Where is its service key?', 'In \\$SVC_SERVICE_KEY');
  await asked('Import 1 session');
  expect(session.notes()).toContain('svc will send them to the memory service.');
  prompts.keypress('enter');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.notes()).not.toContain('Imported ');
});

test('left at any question with Ctrl-C: exit 130, and nothing is written', async () => {
  const typing = (text?: string) => (question: string) => answer(question, text);
  const choosing = (entry: string) => (question: string) => choose(question, entry);
  const steps: readonly [question: string, reply: (question: string) => Promise<void>][] = [
    ['Which provider?', () => find('another', 'Another provider')],
    ['A name for it in svc:', typing('work')],
    ['Its base URL', typing('http://127.0.0.1:9')],
    ['Which API does it serve?', choosing('Anthropic Messages')],
    ['Allow http for this provider', typing()],
    ['How should svc send its key?', choosing('x-api-key')],
    ['The key of work:', typing(TYPED_KEY)],
    ['What now?', choosing('Keep it anyway')],
    ['Where should memories be stored?', choosing('With a memory service')],
    ['Base URL of the memory service', typing('https://memory.example.com')],
    ['The service key:', typing()],
    ['Cache tools and system prompt', typing()],
    ['Should Claude Code use svc', choosing('Yes')],
    ['Import 1 session', typing()],
    ['Write ', choosing('change something')],
    ['What do you want to change?', choosing('Modes and budgets')],
    ['How should svc use its memory?', choosing('read$')],
    ['What should svc do with long requests?', choosing('shadow')],
    ['Above how many tokens', typing()],
    ['How many tokens may', typing()],
    ['Cache tools and system prompt', typing()],
    ['What do you want to change?', choosing('Finish')],
    ['Write ', typing()],
  ];
  // At one question in four, and at the last; on the way nothing is written at any.
  for (const stop of [0, 4, 8, 11, 12, 13, 14, 17, steps.length - 1]) {
    const { home, environment } = usedHome();
    const before = treeOf(home);
    const session = open(home, environment);
    for (const [question, reply] of steps.slice(0, stop)) {
      await reply(question);
      expect(treeOf(home)).toEqual(before);
    }
    // Nobody hears a key that is pressed between two questions.
    await asked(steps[stop]?.[0] ?? '');
    prompts.keypress({ name: 'c', ctrl: true });
    expect(await session.ended).toBe(130);
    expect(session.notes()).toContain('nothing was written');
    expect(treeOf(home)).toEqual(before);
  }
});

test('run again it changes what is there, and keeps what nobody named', async () => {
  const config = { ...validConfig(), proxy: { port: 8765, recallMs: 200 }, extra: 1 };
  const session = open(homeWith(config));
  await choose('What do you want to change?', 'Address and port');
  await answer('On which port', '\b\b\b\b9123');
  await choose('What do you want to change?', 'Modes and budgets');
  await choose('How should svc use its memory?', 'read$');
  await choose('What should svc do with long requests?', 'passthrough');
  await answer('Above how many tokens');
  await answer('How many tokens may');
  // Enter alone keeps the client's own cache.
  await answer('Cache tools and system prompt');
  await choose('What do you want to change?', 'Finish');
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
  await choose('What do you want to change?', 'Finish');
  await choose('Write ', 'No, write nothing');
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
  await asked(`Another program uses port ${port}`);
  prompts.keypress({ name: 'c', ctrl: true });
  expect(await session.ended).toBe(130);
});

test('a provider of the catalog is found by a model, and its variable is offered where it is set', async () => {
  const session = open(tempFolder(), { OPENAI_API_KEY: TYPED_KEY, XAI_API_KEY: TYPED_KEY });
  await asked('Which provider?');
  // Those whose key is at hand come first.
  expect(prompts.getScreen()).toMatch(
    /❯ openai \(\$OPENAI_API_KEY is set\)\n +xai \(\$XAI_API_KEY/,
  );
  await find('claude-opus', 'anthropic \\(has claude-opus');
  await answer('The key of anthropic:');
  // Two API styles, so two upstreams, with one key.
  await find('gpt-5', 'openai \\(\\$OPENAI_API_KEY is set');
  await choose('Where is the key of openai?', 'In \\$OPENAI_API_KEY, which is set');
  await choose('What now?', 'Keep it anyway');
  await answer('Where should memories be stored?');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.config().upstreams).toEqual(
    ['openai_responses', 'openai_chat_completions'].map((apiStyle) => ({
      name: 'openai',
      apiStyle,
      baseUrl: 'https://api.openai.com/v1',
      auth: 'bearer',
      providerKey: { env: 'OPENAI_API_KEY' },
    })),
  );
  expect(session.notes()).not.toContain('CANARY');
});

test('what a catalog only names is shown and cannot be chosen; what it cannot tell is asked', async () => {
  const session = open(tempFolder());
  await asked('Which provider?');
  prompts.type('databricks');
  await asked('discovery only: it publishes no address');
  expect(prompts.getScreen()).toMatch(/^❯ Another provider/m);
  for (const _ of 'databricks') prompts.keypress('backspace');
  // Also the beginning of a name in the catalog.
  prompts.type('gateway');
  await asked('merge-gateway');
  expect(prompts.getScreen()).toMatch(/^❯ Another provider/m);
  for (const _ of 'gateway') prompts.keypress('backspace');
  await find('merge-gateway', 'merge-gateway');
  await choose('Which API does it serve?', 'Anthropic Messages');
  await answer('The key of merge-gateway:', '$NOT_SET_HERE');
  await answer('Where should memories be stored?');
  await asked('Cache tools and system prompt for an hour after a pause?');
  expect(session.notes()).toContain('2 instead of 1.25 times the input price');
  prompts.keypress('enter');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.config()['proxy']).toMatchObject({ cacheTtl: 'auto' });
  expect(session.config().upstreams).toMatchObject([
    { name: 'merge-gateway', apiStyle: 'anthropic_messages', auth: 'x-api-key' },
  ]);
});

/** A memory service with one right key, which may read only. */
async function startService(): Promise<string> {
  const server = createServer((request, reply) => {
    const isRight = request.headers.authorization === `Bearer ${TYPED_KEY}`;
    const isAsked = request.url === '/v1/svc/whoami';
    reply.writeHead(isAsked ? (isRight ? 200 : 401) : 404, { 'content-type': 'application/json' });
    const operations = new FakeOperations();
    operations.scopes = ['read'];
    reply.end(isRight ? JSON.stringify(operations.whoAmI()) : 'SECRET-ECHO');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a hosted memory: its key is tried, a wrong one can be typed again, and nothing is repeated', async () => {
  const url = await startService();
  const session = open(homeWith(validConfig()));
  await choose('What do you want to change?', 'Where memories are stored');
  await choose('Where should memories be stored?', 'With a memory service');
  await answer('Base URL of the memory service', 'http://memory.example.com');
  await asked('Expected https://');
  for (const _ of 'http://memory.example.com') prompts.keypress('backspace');
  await answer('Base URL of the memory service', url);
  await answer('The service key:', 'svc_live_wrong-CANARY');
  await choose('What now?', 'Give the key again');
  expect(session.notes()).toContain('the memory service refuses the service key');
  await answer('The service key:', TYPED_KEY);
  await choose('What do you want to change?', 'Finish');
  expect(session.notes()).toContain('ok: memory service: the key is accepted and may: read;');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.config()['memory']).toEqual({
    kind: 'hosted',
    baseUrl: url,
    serviceKey: TYPED_KEY,
  });
  expect(session.notes()).not.toMatch(/SECRET-ECHO|CANARY/);
});

test('a memory service that is offline may be left out again', async () => {
  const home = homeWith(validConfig());
  const session = open(home, { SVC_SERVICE_KEY: TYPED_KEY });
  await choose('What do you want to change?', 'Where memories are stored');
  await choose('Where should memories be stored?', 'With a memory service');
  await answer('Base URL of the memory service', 'http://127.0.0.1:9');
  await choose('Where is its service key?', 'In \\$SVC_SERVICE_KEY, which is set');
  await choose('What now?', 'Keep the present memory setting');
  expect(session.notes()).toContain('nothing listens at that address');
  await choose('What do you want to change?', 'Finish');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.config()['memory']).toEqual({ kind: 'embedded' });
});

test('R28: run again it offers to take back modes that let others in', async () => {
  const home = homeWith(validConfig());
  const file = join(home, '.config/svc/config.json');
  chmodSync(file, 0o644);
  const session = open(home, { SVC_DATA_HOME: join(home, 'data') });
  await answer('Make it private now?');
  await asked('What do you want to change?');
  expect(session.notes()).toContain(`${file} is open to others (mode 0644)`);
  expect(session.notes()).toContain(`Made private: ${file}`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  prompts.keypress({ name: 'c', ctrl: true });
  expect(await session.ended).toBe(130);
});

test('a second provider goes beside the first, and takes no place that is taken unless told so', async () => {
  const session = open(homeWith(validConfig()), { MINIMAX_API_KEY: TYPED_KEY });
  await choose('What do you want to change?', 'Add or change a provider');
  await find('minimax', 'minimax, MiniMax \\(minimax.io\\) .*\\$MINIMAX_API_KEY is set');
  await asked('anthropic already serves anthropic_messages. Replace it by minimax?');
  prompts.keypress('enter');
  await choose('What do you want to change?', 'Add or change a provider');
  await find('groq', 'groq');
  await answer('The key of groq:', TYPED_KEY);
  await choose('What now?', 'Keep it anyway');
  await choose('What do you want to change?', 'Finish');
  await answer('Write ');
  expect(await session.ended).toBe(0);
  expect(session.config().upstreams).toMatchObject([{ name: 'anthropic' }, { name: 'groq' }]);
});
