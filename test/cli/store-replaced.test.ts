import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { answerTo } from '../support/dialect-wire.ts';
import { homeWith } from '../support/home.ts';
import { type ServerProcess, startProxyProcess } from '../support/proxy-process.ts';
import { startRecordingProvider } from '../support/story.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

// Eight outputs are old enough, as many as are kept at once; what stays is small, so that they leave.
const ROUNDS: readonly Round[] = Array.from({ length: 12 }, (_, at) => ({
  id: `call_${at}`,
  tool: 'Bash',
  args: { command: `cat file-${at}.ts` },
  output: longOutput(`file-${at}.ts`, at < 8 ? 2_000 : 400),
}));

interface Sent {
  readonly state: string | null;
  readonly elided: number;
}

async function send({ url }: ServerProcess, rounds: readonly Round[]): Promise<Sent> {
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': LOCAL_TOKEN },
    body: JSON.stringify(sessionBody('anthropic_messages', rounds)),
  });
  expect(answer.status).toBe(200);
  await answer.text();
  const elided = Number(answer.headers.get('x-svc-elided-items'));
  return { state: answer.headers.get('x-svc-continuity-state'), elided };
}

test('law 2: a memory.db that is deleted under a running proxy proves nothing, and svc says so', async () => {
  const provider = await startRecordingProvider();
  provider.reply = (request) => answerTo(request, { text: 'Done.' });
  const upstream = { name: 'anthropic', apiStyle: 'anthropic_messages', baseUrl: provider.url };
  const home = homeWith({
    ...validConfig(),
    proxy: { recallMs: 5_000 },
    upstreams: [{ ...upstream, providerKey: PROVIDER_KEY, allowPrivate: true }],
  });
  const env = { SVC_DATA_HOME: join(home, 'data') };
  const proxy = await startProxyProcess(home, env);
  for (let count = 1; count <= ROUNDS.length; count += 1) {
    // oxlint-disable-next-line no-await-in-loop -- A tool loop.
    await send(proxy, ROUNDS.slice(0, count));
    // oxlint-disable-next-line no-await-in-loop -- Tools run longer than it takes to keep outputs.
    await wait(150);
  }
  const elided = async () => (await send(proxy, ROUNDS)).elided;
  await expect.poll(elided, { interval: 500 }).toBeGreaterThan(0);
  rmSync(join(home, 'data', 'memory.db'));
  const sent = await send(proxy, ROUNDS);
  expect([sent.state, sent.elided]).toEqual(['bypassed_not_stored', 0]);
  expect(provider.seen.at(-1)?.body.toString()).toContain('file-0.ts line 150 ');

  const told = proxy.stderr().split('was deleted or replaced while svc ran');
  expect(told).toHaveLength(2);
  expect((await runCli(['status'], { home, env })).stderr).toContain('deleted or replaced while');
  expect((await runCli(['doctor'], { home, env })).stdout).toContain('deleted or replaced while');
  // What is held again goes again.
  await expect.poll(elided, { interval: 500 }).toBeGreaterThan(0);
  expect(proxy.stderr().split('was deleted or replaced while svc ran')).toHaveLength(2);
});
