import { expect, onTestFinished, test } from 'vitest';
import { openProxyStage, type ProxyStage, type StageOptions } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MINUTE = 60_000;
const MARK = { type: 'ephemeral' };

async function openStage(options: Partial<StageOptions> = {}): Promise<ProxyStage> {
  const settings = { cacheTtl: 'auto' as const, ...options.settings };
  const stage = await openProxyStage({ folder: tempFolder(), ...options, settings });
  onTestFinished(() => stage.stop());
  return stage;
}

/** A session after so many answers, marked as Claude Code marks it. */
function bodyOf(answers: number): Record<string, unknown> {
  const said = Array.from({ length: answers }, (_, at) => [
    { role: 'assistant', content: `answer ${at}` },
    { role: 'user', content: [{ type: 'text', text: `question ${at + 1}`, cache_control: MARK }] },
  ]);
  return {
    model: 'test-model',
    max_tokens: 1024,
    system: [{ type: 'text', text: 'You are a test agent.', cache_control: MARK }],
    tools: [{ name: 'Bash', input_schema: { type: 'object' }, cache_control: MARK }],
    messages: [{ role: 'user', content: 'question 0' }, ...said.flat()],
  };
}

const SESSION = ['x-claude-code-session-id', 'one-session'];
const hours = (stage: ProxyStage): number => stage.forwarded().split('"ttl":"1h"').length - 1;

/** Sends one request after each pause; the lifetimes that each of them asked for. */
async function play(stage: ProxyStage, pauses: readonly number[], from = 0): Promise<number[]> {
  const found: number[] = [];
  let ahead = 0;
  for (const [at, pause] of pauses.entries()) {
    ahead += pause * MINUTE;
    stage.setClockAhead(ahead);
    // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
    const answer = await stage.send('anthropic_messages', bodyOf(from + at), SESSION);
    expect(answer.status).toBe(200);
    // oxlint-disable-next-line no-await-in-loop
    await stage.settled();
    found.push(hours(stage));
  }
  return found;
}

test('unasked, and in a mode that forwards what the client sent, no mark changes', async () => {
  const usual = await openStage({ settings: { cacheTtl: 'client' } });
  expect(await play(usual, [0, 10, 10])).toEqual([0, 0, 0]);
  const passing = await openStage({ settings: { compressionMode: 'passthrough' } });
  expect(await play(passing, [0, 10, 10])).toEqual([0, 0, 0]);
});

test('from the first pause on tools and system prompt are cached for an hour, and the messages are not', async () => {
  const stage = await openStage({ settings: { memoryMode: 'off' } });
  const body = bodyOf(1);
  expect(await play(stage, [0, 10, 1])).toEqual([0, 2, 2]);
  await stage.send('anthropic_messages', body, SESSION);
  const long = { ...MARK, ttl: '1h' };
  expect(JSON.parse(stage.forwarded())).toEqual({
    ...body,
    system: [{ type: 'text', text: 'You are a test agent.', cache_control: long }],
    tools: [{ name: 'Bash', input_schema: { type: 'object' }, cache_control: long }],
  });
});

test('law 6: a restart goes on with the lifetime that was chosen', async () => {
  const folder = tempFolder();
  const first = await openProxyStage({ folder, settings: { cacheTtl: 'auto' } });
  expect(await play(first, [0, 10])).toEqual([0, 2]);
  await first.stop();
  const second = await openStage({ folder });
  expect(await play(second, [0, 1], 2)).toEqual([2, 2]);
});

test('a long lifetime that never paid is taken back after a pause that outlives it', async () => {
  const stage = await openStage();
  // The scripted provider serves nothing from a cache: after a bridged pause that ends it for good.
  expect(await play(stage, [0, 10, 90, 1])).toEqual([0, 2, 0, 0]);
  const unserved = await openStage();
  expect(await play(unserved, [0, 10, 10, 1, 10])).toEqual([0, 2, 2, 0, 0]);
});
