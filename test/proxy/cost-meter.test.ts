import { expect, onTestFinished, test } from 'vitest';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { openProxyStage, type ProxyStage, type StageOptions } from '../support/proxy-stage.ts';
import {
  promptCache,
  type PromptUsage,
  uncached,
} from '../support/scripted-provider/prompt-cache.ts';
import { tempFolder } from '../support/temp-folder.ts';
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

const isShortened = (request: unknown): boolean => JSON.stringify(request).includes('[svc left ');

/** A provider that caches the system prompt alone of whatever svc has shortened. */
function forgetfulCache(): (request: unknown) => PromptUsage {
  const cache = promptCache();
  return (request) => {
    const usage = cache(request);
    if (!isShortened(request)) return usage;
    const all = usage.cacheRead + usage.cacheWrite;
    return { input: 0, cacheRead: 100, cacheWrite: all - 100 };
  };
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
    expect(shortened.filter(({ verdict }) => verdict !== undefined)).toEqual([]);
  },
  LONG_MS,
);

test(
  '[3.3-bypassed] a conversation that is dearer shortened than direct is sent whole from then on, also after a restart',
  async () => {
    const folder = tempFolder();
    const provider = { usageOf: forgetfulCache() };
    const first = await openProxyStage({ folder, provider });
    const rows = await play(first, { to: 60 });
    const batch = rows.findIndex(({ elidedItems }) => elidedItems > 0);
    const stop = rows.findIndex(({ verdict }) => verdict !== undefined);
    expect(batch).toBeGreaterThan(0);
    // It had the time to prove itself.
    expect(stop).toBeGreaterThanOrEqual(batch + 20);
    expect(rows[stop]?.verdict).toBe('send_all');
    for (const row of rows.slice(stop + 1)) {
      expect(row).toMatchObject({
        verdict: 'send_all',
        continuityState: 'bypassed_not_worth_it',
        compressionMode: 'passthrough',
        elidedItems: 0,
      });
    }
    expect(first.forwarded()).not.toContain('[svc left ');
    await first.stop();
    const second = await openStage({ folder, provider });
    const [row] = await play(second, { from: 61, to: 61 });
    expect(row).toMatchObject({ verdict: 'send_all', continuityState: 'bypassed_not_worth_it' });
    expect(second.forwarded()).not.toContain('[svc left ');
  },
  LONG_MS,
);

test(
  'a provider without a cache, or that does not tell of one, is no reason to stop',
  async () => {
    const rows = await play(await openStage({ provider: { usageOf: uncached } }), { to: 60 });
    expect(rows.at(-1)?.elidedItems).toBeGreaterThan(8);
    expect(rows.filter(({ verdict }) => verdict !== undefined)).toEqual([]);
    expect(sum(rows, ({ price }) => price?.paid)).toBeLessThan(
      sum(rows, ({ price }) => price?.direct),
    );
  },
  LONG_MS,
);

test(
  'after a restart the meter goes on with what the request log has',
  async () => {
    const folder = tempFolder();
    const provider = { usageOf: forgetfulCache() };
    const first = await openProxyStage({ folder, provider });
    const before = await play(first, { to: 30 });
    expect(before.at(-1)?.elidedItems).toBeGreaterThan(0);
    expect(before.filter(({ verdict }) => verdict !== undefined)).toEqual([]);
    await first.stop();
    const rows = await play(await openStage({ folder, provider }), { from: 31, to: 50 });
    // A meter that began anew would need 20 requests again.
    expect(rows.some(({ verdict }) => verdict === 'send_all')).toBe(true);
  },
  LONG_MS,
);

test.each([
  [4, 0],
  [6, 1],
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
