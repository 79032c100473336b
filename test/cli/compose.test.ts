import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { outputFileRefs, writeOutputFile } from '../../src/adapters/files/output-files.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { startProxy } from '../../src/cli/compose.ts';
import { Terminal } from '../../src/cli/terminal.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import type { Settings } from '../../src/core/settings/settings.ts';
import { requestWith, said } from '../support/dialect-wire.ts';
import { PROXY_SETTINGS, TOKEN } from '../support/local-server.ts';
import { outputRecordOf } from '../support/records.ts';
import { startRecordingProvider } from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { upstreamSettings } from '../support/upstream.ts';

const quiet = { write: () => true };
const terminal = new Terminal({ stdout: quiet, stderr: quiet, environment: {} });

function settingsWith(other: Partial<Settings>): Settings {
  return {
    proxy: PROXY_SETTINGS,
    memory: { kind: 'embedded' },
    upstreams: [],
    localToken: TOKEN,
    ui: true,
    ...other,
  };
}

const UNUSABLE: readonly (Partial<Settings> & { name: string })[] = [
  {
    name: 'memory',
    memory: {
      kind: 'hosted',
      baseUrl: 'no url',
      serviceKey: 'svc_live_0000000000000000_x',
      allowPrivate: false,
    },
  },
  { name: 'host', proxy: { ...PROXY_SETTINGS, host: '192.0.2.1' } },
];

test.each(UNUSABLE)('a start that ends at its $name leaves nothing open', async (other) => {
  const folder = tempFolder();
  const waiting = process.listenerCount('exit');
  const settings = settingsWith(other);
  await expect(startProxy({ settings, dataFolder: folder, terminal })).rejects.toThrow();
  // The store waits for the end of the process as long as it is open.
  expect(process.listenerCount('exit')).toBe(waiting);
  expect(readdirSync(folder).filter((name) => name.endsWith('.journal'))).toEqual([]);
});

test('R26: the file of an output that is no longer held goes when svc starts', async () => {
  const folder = tempFolder();
  const { digest, text } = outputRecordOf('What a kill left behind.');
  await writeOutputFile(folder, { ref: referenceOf(digest), text }, Date.now());
  const proxy = await startProxy({ settings: settingsWith({}), dataFolder: folder, terminal });
  onTestFinished(() => proxy.stop());
  await expect.poll(() => outputFileRefs(folder)).toEqual([]);
});

test('R33: what of an earlier session waits to be kept is kept when svc is told to stop', async () => {
  const folder = tempFolder();
  const provider = await startRecordingProvider();
  const upstream = upstreamSettings({ baseUrl: provider.url, allowPrivate: true });
  const settings = settingsWith({ upstreams: [upstream] });
  const proxy = await startProxy({ settings, dataFolder: folder, terminal });
  const items = [1, 2, 3].flatMap((at) => [
    said('user', `Fact number ${at}: the bay ${at} belongs to team ${at}.`),
    said('assistant', `Bay ${at} is noted for the team.`),
  ]);
  const body = requestWith('anthropic_messages', [...items, said('user', 'Who owns bay 2?')]);
  const answer = await fetch(`http://127.0.0.1:${proxy.port}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(200);
  await answer.text();
  await proxy.stop();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  const records = await store.memory.list({ limit: 100 }, AbortSignal.timeout(30_000));
  expect(records.map(({ text }) => text)).toEqual(
    expect.arrayContaining(items.map(({ content }) => content)),
  );
});

test('R41: a key of the configuration is kept nowhere, whatever it looks like', async () => {
  const folder = tempFolder();
  const provider = await startRecordingProvider();
  const providerKey = 'the-walrus-sleeps-at-noon';
  const upstream = upstreamSettings({ baseUrl: provider.url, allowPrivate: true, providerKey });
  const settings = settingsWith({ upstreams: [upstream] });
  const proxy = await startProxy({ settings, dataFolder: folder, terminal });
  const prompt = `The gateway wants ${providerKey} from every client of team seven.`;
  const body = requestWith('anthropic_messages', [said('user', prompt)]);
  const answer = await fetch(`http://127.0.0.1:${proxy.port}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await answer.text();
  await proxy.stop();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  const records = await store.memory.list({ limit: 100 }, AbortSignal.timeout(30_000));
  expect(records.map(({ text }) => text).join('\n')).toContain('from every client of team seven');
  for (const name of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!name.isFile()) continue;
    const bytes = readFileSync(join(name.parentPath, name.name));
    expect(bytes.includes(providerKey), name.name).toBe(false);
  }
});
