import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runCli, runHere } from '../support/cli.ts';
import { LOCAL_TOKEN, validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { homeWith } from '../support/home.ts';

vi.setConfig({ testTimeout: 60_000 });

/** A row is written a moment after its answer, and a busy machine takes longer for a command. */
const WAIT = { timeout: 20_000, interval: 200 };
const REFUSAL = JSON.stringify({
  type: 'error',
  error: { type: 'authentication_error', message: 'no' },
});

/** A provider that refuses every key until it is told to accept it. */
async function openProvider() {
  let isAccepting = false;
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.setHeader('x-should-retry', 'true');
    response.statusCode = isAccepting ? 200 : 401;
    response.end(isAccepting ? '{"type":"message","role":"assistant","content":[]}' : REFUSAL);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, accept: () => (isAccepting = true) };
}

test('a provider that refuses svc’s key: the answer stays, no retry, and svc says what helps', async () => {
  const provider = await openProvider();
  const port = await freePort();
  const [upstream] = validConfig()['upstreams'] as object[];
  const own = { ...upstream, name: 'mine', apiStyle: 'anthropic_messages', auth: 'x-api-key' };
  const home = homeWith({
    ...validConfig(),
    proxy: { port },
    upstreams: [{ ...own, baseUrl: provider.url, allowPrivate: true }],
  });
  expect(await runCli(['start', '--detach'], { home })).toMatchObject({ code: 0 });
  onTestFinished(async () => void (await runHere(['stop'], { home })));
  const ask = () =>
    fetch(`http://127.0.0.1:${port}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': LOCAL_TOKEN, 'content-type': 'application/json' },
      body: '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
    });
  const refused = await ask();
  expect(refused.status).toBe(401);
  expect(refused.headers.get('x-should-retry')).toBe('false');
  expect(await refused.text()).toBe(REFUSAL);
  await vi.waitFor(async () => {
    const told = await runHere(['status'], { home });
    expect(told.stderr).toContain('mine refuses the key that svc has for it');
    expect(told.stderr).toContain('svc setup --yes --upstream mine --key-stdin');
  }, WAIT);
  provider.accept();
  const accepted = await ask();
  expect([accepted.status, accepted.headers.get('x-should-retry')]).toEqual([200, 'true']);
  await accepted.text();
  await vi.waitFor(async () => {
    expect((await runHere(['status'], { home })).stderr).not.toContain('refuses');
  }, WAIT);
});
