import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { activityLines, activityOf } from '../../src/cli/requests/top.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { BIN, runCli, tempFolder } from '../support/cli.ts';
import { LOCAL_TOKEN } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';
import { startProxyProcess } from '../support/proxy-process.ts';
import { requestRow } from '../support/request-row.ts';
import { screen } from '../support/screen.ts';
import { startScriptedProvider } from '../support/scripted-provider/provider.ts';
import { missingTmux, openTmux } from '../support/tmux.ts';

const NOW = new Date(2026, 10, 20, 17, 0, 0).getTime();

function rows(): readonly RequestRow[] {
  return [
    requestRow({ id: 'r3', at: NOW - 10_000 }),
    requestRow({
      id: 'r2',
      at: NOW - 20_000,
      kind: 'title',
      model: 'small',
      memoryState: 'skipped_side_call',
    }),
    requestRow({
      id: 'r1',
      at: NOW - 90_000,
      memoryState: 'empty',
      recalledTokens: 0,
      elidedTokens: 900,
    }),
    requestRow({
      id: 'r0',
      at: NOW - 95_000,
      client: 'codex',
      conversation: 'c2',
      space: '/x',
      status: 529,
    }),
  ];
}

function openRow(): RequestRow {
  const { usage: _, ...row } = requestRow({ id: 'r4', at: NOW - 3_000, status: 0, end: 'open' });
  return row;
}

test('sums go by conversation; what is open counts apart', () => {
  const activity = activityOf({ proxies: [], open: [openRow()], finished: rows() });
  expect(activity.total).toMatchObject({
    requests: 4,
    failed: 1,
    asked: 3,
    recalled: 2,
    keptTokens: 900,
  });
  expect(activity.total.cacheRate).toBeCloseTo(47_000 / 48_300, 5);
  expect(activity.conversations).toMatchObject([
    {
      conversation: 'c1',
      requests: 3,
      openRequests: 1,
      model: 'claude-opus-5-5',
      recalled: 1,
      asked: 2,
    },
    { conversation: 'c2', requests: 1, client: 'codex', openRequests: 0 },
  ]);
  const none = activityOf({ proxies: [], open: [], finished: [] });
  expect(none.total).toMatchObject({ requests: 0, cacheRate: null });
});

test('no line is wider and no view is longer than the screen, whatever its size', () => {
  const nasty = requestRow({ at: NOW, model: 'm\u001b[2J'.repeat(30), space: '/a\n'.repeat(80) });
  const many = Array.from({ length: 60 }, (_, at) => ({ ...nasty, conversation: `c${at}` }));
  const activity = activityOf({ proxies: ['http://127.0.0.1:1'], open: many, finished: many });
  for (const [columns, height] of [
    [200, 60],
    [80, 24],
    [40, 10],
    [20, 5],
    [10, 3],
  ] as const) {
    const { colors } = screen().terminal;
    const lines = activityLines(activity, { colors, columns, rows: height, now: NOW });
    expect(lines.length).toBeLessThanOrEqual(height);
    for (const line of lines) expect(Array.from(line).length).toBeLessThanOrEqual(columns);
    // oxlint-disable-next-line no-control-regex
    expect(lines.join('\n')).not.toMatch(/\u001b/);
  }
});

/** A proxy that serves, and a provider that may not answer. */
async function startStage() {
  const provider = await startScriptedProvider();
  onTestFinished(() => provider.stop());
  const upstream = {
    name: 'slow',
    apiStyle: 'anthropic_messages',
    baseUrl: provider.url,
    providerKey: 'key-of-the-provider',
    allowPrivate: true,
  };
  const home = homeWith({
    version: 1,
    proxy: { port: 0 },
    memory: { kind: 'embedded' },
    upstreams: [upstream],
    localToken: LOCAL_TOKEN,
  });
  const env = { SVC_DATA_HOME: join(home, 'data') };
  const { url } = await startProxyProcess(home, env);
  const ask = (text: string): Promise<string> =>
    fetch(`${url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': LOCAL_TOKEN },
      body: JSON.stringify({
        model: 'claude-sonnet-4-5',
        max_tokens: 100,
        stream: true,
        messages: [{ role: 'user', content: text }],
      }),
    })
      .then((answer) => answer.text())
      .catch(() => '');
  /** In flight for as long as the test takes. */
  const askInVain = (): Promise<string> => {
    provider.failWith({ kind: 'hang' });
    return ask('Take your time.');
  };
  return { home, env, url, ask, askInVain };
}

interface Printed {
  proxies: string[];
  open: { model: string; end: string; forwardedInputTokens: number }[];
  latest: { status: number }[];
  total: { requests: number };
}

test('--watch --json tells what is in flight and what has ended, and without a terminal it prints once', async () => {
  const { home, env, url, ask, askInVain } = await startStage();
  await ask('Say this. [[final=done]]');
  void askInVain();
  const look = async (): Promise<Printed> => {
    const { stdout } = await runCli(['status', '--watch', '--json'], { home, env });
    return JSON.parse(stdout) as Printed;
  };
  await expect.poll(look).toMatchObject({
    proxies: [url],
    open: [{ model: 'claude-sonnet-4-5', end: 'open', forwardedInputTokens: expect.any(Number) }],
    latest: [{ status: 200 }],
    total: { requests: 1 },
  });
  expect((await look()).open[0]?.forwardedInputTokens).toBeGreaterThan(0);
  const { stdout, stderr, code } = await runCli(['status', '--watch'], { home, env });
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain('In flight: 1');
  // oxlint-disable-next-line no-control-regex
  expect(stdout).not.toMatch(/\u001b/);
});

test('R4: what is in flight is told to a holder of the token only', async () => {
  const { url } = await startStage();
  const ask = (headers: Record<string, string>, method = 'GET') =>
    fetch(`${url}/svc/open-requests`, { method, headers });
  expect((await ask({})).status).toBe(401);
  expect((await ask({ 'x-api-key': 'svc_local_wrong' })).status).toBe(401);
  expect((await ask({ 'x-api-key': LOCAL_TOKEN, origin: 'https://a.example' })).status).toBe(403);
  expect((await ask({ 'x-api-key': LOCAL_TOKEN }, 'DELETE')).status).toBe(405);
  const answer = await ask({ 'x-api-key': LOCAL_TOKEN });
  expect(await answer.json()).toEqual({ requests: [] });
  expect(answer.headers.get('cache-control')).toBe('no-store');
});

test('where no proxy runs it says so, and ends', async () => {
  const home = homeWith({ version: 1, proxy: { port: await freePort() }, localToken: LOCAL_TOKEN });
  const env = { SVC_DATA_HOME: join(tempFolder(), 'data') };
  const { stdout, code } = await runCli(['status', '--watch'], { home, env });
  expect([code, stdout]).toEqual([0, expect.stringContaining('svc is not running: svc start')]);
  const wrong = await runCli(['status', '--watch', '--interval', '0'], { home, env });
  expect(wrong.code).toBe(2);
});

const noTerminal = missingTmux();

test.skipIf(noTerminal !== undefined).each(['q', 'C-c'])(
  'on a terminal it is live, and %s gives the screen back',
  async (key) => {
    const { home, env, askInVain } = await startStage();
    const tmux = openTmux({ command: 'sh', home, environment: env });
    tmux.type('echo before-the-view');
    await tmux.shows('before-the-view');
    tmux.type(`'${process.execPath}' '${BIN}' status --watch; echo left-with-$?`);
    await tmux.shows('In flight: 0');
    expect(tmux.screen()).not.toContain('before-the-view');
    void askInVain();
    await tmux.shows('In flight: 1');
    await tmux.shows('claude-sonnet-4-5');
    tmux.press(key);
    await tmux.shows('left-with-0');
    expect(tmux.screen()).toContain('before-the-view');
    // The keys are echoed again.
    tmux.type('echo after-it', false);
    await tmux.shows('echo after-it');
  },
);
