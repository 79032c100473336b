import { describe, expect, onTestFinished, test } from 'vitest';
import { openProxyStage, type ProxyStage } from '../support/proxy-stage.ts';
import { promptCache } from '../support/scripted-provider/prompt-cache.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

/** The whole proxy in front of a provider that caches: what svc itself changes is svc's. */

const ROUNDS: readonly Round[] = Array.from({ length: 40 }, (_, at) => ({
  id: `call_${at}`,
  tool: 'Bash',
  args: { command: `step ${at}` },
  output: longOutput(`r${at}`, 900),
}));

async function play(stage: ProxyStage, bodyOf: (body: object, count: number) => object) {
  for (let count = 1; count <= ROUNDS.length; count += 1) {
    const body = sessionBody('anthropic_messages', ROUNDS.slice(0, count));
    // oxlint-disable no-await-in-loop -- A client waits for each answer.
    expect((await stage.send('anthropic_messages', bodyOf(body, count))).status).toBe(200);
    await stage.settled();
    // oxlint-enable no-await-in-loop
  }
}

async function openStage(
  settings = {},
  { folder = tempFolder(), usageOf = promptCache() } = {},
): Promise<ProxyStage> {
  const stage = await openProxyStage({ folder, provider: { usageOf }, settings });
  onTestFinished(() => stage.stop());
  return stage;
}

test('a batch of outputs that svc leaves out is svc’s miss, and never the client’s', async () => {
  const stage = await openStage();
  await play(stage, (body) => body);
  const misses = stage.rows.flatMap(({ miss }) => (miss === undefined ? [] : [miss]));
  expect(misses.length).toBeGreaterThan(0);
  for (const miss of misses) expect(miss).toMatchObject({ by: 'svc', own: 'outputs' });
}, 120_000);

test('a server of tools that connects late is the client’s miss, once', async () => {
  const stage = await openStage({ compressionMode: 'passthrough' });
  const late = [{ name: 'Bash', input_schema: { type: 'object' } }, { name: 'mcp__jira__find' }];
  await play(stage, (body, count) => (count > 20 ? { ...body, tools: late } : body));
  const missed = stage.rows.flatMap(({ miss }, at) => (miss === undefined ? [] : [[at + 1, miss]]));
  expect(missed).toMatchObject([
    [21, { by: 'client', place: 'tools', change: 'added', name: 'jira', isServer: true }],
  ]);
}, 120_000);

describe('the first request after svc was restarted', () => {
  const settings = { compressionMode: 'passthrough' } as const;

  async function afterRestart(
    change: (body: object) => object,
    { isForgotten = false, aheadMs = 0 } = {},
  ) {
    const folder = tempFolder();
    const usageOf = promptCache();
    const before = await openStage(settings, { folder, usageOf });
    const bodyOf = (count: number): object =>
      sessionBody('anthropic_messages', ROUNDS.slice(0, count));
    await before.send('anthropic_messages', bodyOf(20));
    await before.settled();
    await before.stop();
    const cache = isForgotten ? promptCache() : usageOf;
    const stage = await openStage(settings, { folder, usageOf: cache });
    stage.setClockAhead(aheadMs);
    for (const count of [21, 22]) {
      // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
      await stage.send('anthropic_messages', change(bodyOf(count)));
    }
    return stage.rows.map(({ miss }) => miss);
  }

  test('has no miss where the provider read all from its cache', async () => {
    expect(await afterRestart((body) => body)).toEqual([undefined, undefined]);
  });

  test('says that a miss was not compared, once', async () => {
    const [first, second] = await afterRestart((body) => ({ ...body, tools: [{ name: 'New' }] }));
    expect(first).toMatchObject({ by: 'restart' });
    expect(first?.tokens).toBeGreaterThan(2_048);
    expect(second).toBeUndefined();
  });

  test('says that the lifetime of the cache ran out, where that is known', async () => {
    const [first] = await afterRestart((body) => body, { isForgotten: true, aheadMs: 600_000 });
    expect(first).toMatchObject({ by: 'time' });
    expect(first?.pausedMs).toBeGreaterThan(500_000);
  });

  test('is compared with nothing where the conversation is new', async () => {
    const stage = await openStage(settings);
    await stage.send('anthropic_messages', sessionBody('anthropic_messages', ROUNDS));
    expect(stage.rows.map(({ miss }) => miss)).toEqual([undefined]);
  });
});
