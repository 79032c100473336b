import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type RunningProxy, startProxy } from '../../src/cli/compose.ts';
import { Terminal } from '../../src/cli/terminal.ts';
import { UI_SECRET_HEADER } from '../../src/core/http/ui-gate.ts';
import { blockKeyOf, withoutOwnBlocks } from '../../src/core/recall/own-blocks.ts';
import type { ProxySettings, Settings } from '../../src/core/settings/settings.ts';
import { answerTo, requestWith, said } from '../support/dialect-wire.ts';
import { PROXY_SETTINGS, TOKEN } from '../support/local-server.ts';
import { startRecordingProvider } from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { upstreamSettings } from '../support/upstream.ts';

/** A configuration that changes while requests are open. */

const quiet = { write: () => true };
const terminal = new Terminal({ stdout: quiet, stderr: quiet, environment: {} });

interface Change {
  readonly proxy?: Partial<ProxySettings>;
  readonly token?: string;
  readonly header?: string;
}

async function running(url: string, first: Change = {}) {
  const settingsOf = ({ proxy = {}, token = TOKEN, header = '0' }: Change): Settings => ({
    // A busy machine opens a store late.
    proxy: {
      ...PROXY_SETTINGS,
      sessionBrief: false,
      recallQuietPercent: 0,
      recallMs: 10_000,
      ...proxy,
    },
    memory: { kind: 'embedded' },
    upstreams: [
      upstreamSettings({ baseUrl: url, allowPrivate: true, headers: { 'x-release': header } }),
    ],
    localToken: token,
    ui: true,
  });
  const settings = settingsOf(first);
  const proxy = await startProxy({ settings, dataFolder: tempFolder(), terminal });
  onTestFinished(() => proxy.stop());
  return { proxy, apply: (change: Change) => proxy.apply(settingsOf(change)) };
}

function send(
  { port }: RunningProxy,
  text: string,
  { path = '/v1/messages', token = TOKEN } = {},
): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(requestWith('anthropic_messages', [said('user', text)])),
  });
}

test('no request in hand fails when the configuration changes, and old connections end', async () => {
  const sockets = new Set<unknown>();
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    incoming.resume();
    await sleep(Math.random() * 20);
    outgoing.writeHead(200, { 'content-type': 'application/json' });
    outgoing.end('{"type":"message","role":"assistant","content":[],"usage":{}}');
  };
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { proxy, apply } = await running(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  );
  const done = new AbortController();
  const changes = (async () => {
    for (let release = 1; !done.signal.aborted; release += 1) {
      apply({ header: String(release) });
      await sleep(1);
    }
  })();
  const statuses: number[] = [];
  for (let round = 0; round < 12; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, at) => send(proxy, `Question ${round} ${at}`)),
    );
    await Promise.all(answers.map((one) => one.text()));
    statuses.push(...answers.map(({ status }) => status));
  }
  done.abort();
  await changes;
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  await send(proxy, 'The last question').then((one) => one.text());
  await expect.poll(() => sockets.size).toBeLessThanOrEqual(1);
});

test('the second try of a refused change still goes out after the configuration changed', async () => {
  const provider = await startRecordingProvider();
  const { proxy, apply } = await running(provider.url);
  await send(proxy, 'The walrus gate opens at bay seventeen.').then((one) => one.text());
  await sleep(300);
  let refused = 0;
  provider.reply = (request) => {
    if (!request.body.includes('<svc-memory')) return answerTo(request);
    refused += 1;
    apply({ header: 'next' });
    return { ...answerTo(request), status: 400, delayMs: 50 };
  };
  const answer = await send(proxy, 'At which bay does the walrus gate open?');
  expect([refused, answer.status]).toEqual([1, 200]);
});

test('every limit of a changed configuration counts from the next request on', async () => {
  const provider = await startRecordingProvider();
  const { proxy, apply } = await running(provider.url);
  const long = 'long '.repeat(1000);
  const statusOf = async (text: string, path?: string): Promise<number> => {
    const answer = await send(proxy, text, path === undefined ? {} : { path });
    await answer.text();
    return answer.status;
  };
  expect(await statusOf(long)).toBe(200);
  apply({ proxy: { bodyBytesMax: 2000 } });
  expect(await statusOf(long)).toBe(413);
  apply({ proxy: { bodyBytesMax: 2 << 20 } });
  expect(await statusOf(long)).toBe(200);

  expect(await statusOf('hi', '/v1/messages/batches')).toBe(404);
  apply({ proxy: { relayPaths: ['/v1/messages/batches'] } });
  expect(await statusOf('hi', '/v1/messages/batches')).toBe(200);

  provider.reply = (request) => ({ ...answerTo(request), delayMs: 3000 });
  apply({ proxy: { upstreamHeadersMs: 200 } });
  expect(await statusOf('hi')).toBe(504);
});

test('a rotated token gives recalled blocks its own mark', async () => {
  const provider = await startRecordingProvider();
  const { proxy, apply } = await running(provider.url);
  await send(proxy, 'The walrus gate opens at bay seventeen.').then((one) => one.text());
  await sleep(300);
  const token = `${TOKEN}-next`;
  apply({ token });
  await send(proxy, 'At which bay does the walrus gate open?', { token }).then((it) => it.text());
  const body = provider.seen.at(-1)?.body.toString() ?? '';
  const { messages } = JSON.parse(body) as { messages: { content: string | { text: string }[] }[] };
  const texts = messages.flatMap(({ content }) =>
    typeof content === 'string' ? content : content.map(({ text }) => text),
  );
  const block = texts.find((text) => text.includes('<svc-memory'));
  expect(block).toBeDefined();
  const marks = { blocks: [], key: blockKeyOf(token) };
  expect(withoutOwnBlocks(block ?? '', marks)).not.toContain('<svc-memory');
});

test('a stop waits for open answers as long as the changed configuration says', async () => {
  const provider = await startRecordingProvider();
  provider.reply = (request) => ({ ...answerTo(request), hangs: true });
  const { proxy, apply } = await running(provider.url, { proxy: { drainMs: 600_000 } });
  const answer = await send(proxy, 'hi');
  apply({ proxy: { drainMs: 10 } });
  // The deadline of the test is a tenth of the first limit.
  await Promise.all([proxy.stop(), answer.text().catch(() => '')]);
});

test('R47: a rotated token ends the sessions and the links of the page', async () => {
  const provider = await startRecordingProvider();
  const { proxy, apply } = await running(provider.url);
  const url = `http://127.0.0.1:${proxy.port}`;
  const call = (path: string, headers: Record<string, string>, body?: string): Promise<Response> =>
    fetch(url + path, {
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { method: 'POST', body }),
    });
  const newCode = async (): Promise<string> => {
    const answer = await call('/svc/ui-link', { authorization: `Bearer ${TOKEN}` }, '{}');
    return ((await answer.json()) as { link: string }).link.slice('/svc/ui#link='.length);
  };
  const open = (code: string): Promise<Response> =>
    call('/svc/ui/api/session', { origin: url }, JSON.stringify({ code }));
  const opened = await open(await newCode());
  const { secret } = (await opened.json()) as { secret: string };
  const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
  const ask = async (): Promise<number> =>
    (await call('/svc/ui/api/about', { cookie, [UI_SECRET_HEADER]: secret })).status;
  const unused = await newCode();
  apply({ header: 'next' });
  expect(await ask()).toBe(200);
  apply({ token: `${TOKEN}-next` });
  await expect.poll(ask).toBe(401);
  expect((await open(unused)).status).toBe(401);
});
