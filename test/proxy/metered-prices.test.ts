import { expect, onTestFinished, test } from 'vitest';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { openProxyStage, type ProxyStage, type StageOptions } from '../support/proxy-stage.ts';
import { promptCache, uncached } from '../support/scripted-provider/prompt-cache.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { prose } from '../support/miss-stage.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

const LONG_MS = 120_000;

async function openStage(options: Partial<StageOptions> = {}): Promise<ProxyStage> {
  const stage = await openProxyStage({ folder: tempFolder(), ...options });
  onTestFinished(() => stage.stop());
  return stage;
}

function roundsOf(count: number, tokens: number): Round[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `call_${at}`,
    tool: 'Bash',
    args: { command: `step ${at}` },
    output: longOutput(`r${at}`, tokens),
  }));
}

/** Sends the session as it grows, a request after each round, as a client does. */
async function play(
  stage: ProxyStage,
  { from = 1, to, tokens = 900 }: { from?: number; to: number; tokens?: number },
): Promise<readonly RequestRow[]> {
  const rounds = roundsOf(to, tokens);
  const before = stage.rows.length;
  for (let count = from; count <= to; count += 1) {
    // oxlint-disable no-await-in-loop -- A client waits for each answer.
    const body = sessionBody('anthropic_messages', rounds.slice(0, count));
    expect((await stage.send('anthropic_messages', body)).status).toBe(200);
    await stage.settled();
    // oxlint-enable no-await-in-loop
  }
  return stage.rows.slice(before);
}

function sum(rows: readonly RequestRow[], valueOf: (row: RequestRow) => number | undefined) {
  return rows.reduce((total, row) => total + (valueOf(row) ?? 0), 0);
}

test(
  'law 3: each row has what it cost and what direct would have cost, and the model of direct is right',
  async () => {
    const shortened = await play(await openStage({ provider: { usageOf: promptCache() } }), {
      to: 40,
    });
    const direct = await play(
      await openStage({
        provider: { usageOf: promptCache() },
        settings: { compressionMode: 'passthrough' },
      }),
      { to: 40 },
    );
    const paid = sum(shortened, ({ price }) => price?.paid);
    const modelled = sum(shortened, ({ price }) => price?.direct);
    const real = sum(direct, ({ price }) => price?.paid);
    expect(shortened.at(-1)?.elidedItems).toBeGreaterThan(8);
    expect(modelled / real).toBeGreaterThan(0.95);
    // Where most is left out, the estimates of the little that remains weigh more.
    expect(modelled / real).toBeLessThan(1.08);
    expect(paid).toBeLessThan(real);
    expect(sum(direct, ({ price }) => price?.direct)).toBeCloseTo(real, 0);
  },
  LONG_MS,
);

test(
  'without a cache every token that is left out is saved in full',
  async () => {
    const rows = await play(await openStage({ provider: { usageOf: uncached } }), { to: 60 });
    expect(rows.at(-1)?.elidedItems).toBeGreaterThan(8);
    expect(sum(rows, ({ price }) => price?.paid)).toBeLessThan(
      sum(rows, ({ price }) => price?.direct),
    );
  },
  LONG_MS,
);

// The ledger notes a request once a minute, so a pause counts a minute less after a restart.
test.each([
  [5, 0],
  [7, 1],
])(
  'a cache that is cold after a restart is noticed: %i minutes later %i batch is made',
  async (minutes, batches) => {
    const folder = tempFolder();
    const first = await openProxyStage({ folder });
    const before = await play(first, { to: 10 });
    expect(before.at(-1)?.elidedItems).toBe(0);
    await first.stop();
    const second = await openStage({ folder });
    second.setClockAhead(minutes * 60_000);
    const [row] = await play(second, { from: 10, to: 10 });
    expect(Number((row?.elidedItems ?? 0) > 0)).toBe(batches);
  },
);

test('a request above the limit of its model has the higher price, and so has what its cache missed', async () => {
  const tokens = 120_000;
  const stage = await openStage({ provider: { usageOf: () => usage } });
  const said = [{ role: 'user', content: prose(7, 4_000) }];
  const ask = async (messages: readonly object[]) => {
    await stage.send('anthropic_messages', { model: 'claude-haiku-5-5', max_tokens: 9, messages });
    await stage.settled();
    return stage.rows.at(-1);
  };
  const usage = { input: 0, cacheRead: 0, cacheWrite: tokens };
  const first = await ask(said);
  // A write costs 1.25 tokens of input, and a token of the answer five. All of that is five times as high.
  const price = 5 * 1.25 * tokens + (5 - 1) * 5 * (first?.usage?.output ?? 0);
  expect(first?.price).toEqual({ paid: price, direct: price });
  const again = [
    ...said,
    { role: 'assistant', content: 'Noted.' },
    { role: 'user', content: 'On.' },
  ];
  const row = await ask(again);
  expect(row?.miss?.price).toBe(Math.round((row?.miss?.tokens ?? 0) * 5 * 1.15));
});
