import { expect, test, vi } from 'vitest';
import { ProcessLimiter } from '../../src/adapters/limiter/process-limiter.ts';
import type { LeaseAsk, Limiter } from '../../src/ports/limiter.ts';
import type { SpentQuestion } from '../../src/ports/receipt-store.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { ServiceFault } from '../../src/server/fault.ts';
import { type AskingCall, ModelAdmission } from '../../src/server/admission.ts';
import { callerOf } from '../support/callers.ts';
import { limiterOf } from '../support/limits.ts';
import { manualClock } from '../../../test/support/manual-clock.ts';

interface Given {
  readonly limiter?: Limiter;
  /** Tokens that receipts tell of. */
  readonly spent?: (asked: SpentQuestion & { readonly tenant: string }) => number | Promise<number>;
}

function open({ limiter, spent = () => 0 }: Given = {}) {
  const clock = manualClock();
  const asked: object[] = [];
  const store = {
    of: (tenant: string) => ({
      tokensSpent: async (question: SpentQuestion) => {
        asked.push({ tenant, ...question });
        return spent({ tenant, ...question });
      },
    }),
  };
  const own = new ModelAdmission({
    limiter: limiter ?? new ProcessLimiter(clock),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It is asked for nothing else.
    store: store as unknown as ServiceStore,
    receipts: { flush: async () => true },
    clock,
    settings: { requestsPerMinute: null },
  });
  let calls = 0;
  const admission = {
    /** Counts the call, and then its tokens. */
    admit: async (call: Omit<AskingCall, 'callId'>) => {
      await own.enter(call.caller);
      return own.admit({ callId: `call_${calls++}`, ...call });
    },
  };
  return { admission, clock, asked };
}

async function refusal(call: Promise<unknown>): Promise<readonly unknown[]> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ServiceFault)) return ['none'];
  return [error.code, error.more.param, error.more.afterMs];
}

// spec: 8-plan-rates
test.each([
  [{ requests_per_minute: 60, requests_burst: 1 }, 'requests_per_minute', 1000],
  [{ input_tokens_per_minute: 6000 }, 'input_tokens_per_minute', 40_000],
  [{ concurrent_requests: 1 }, 'concurrent_requests', 1000],
] as const)('the limit %j is named, with its wait', async (limits, name, waitMs) => {
  const { admission } = open();
  const ask = () => admission.admit({ caller: callerOf(limits), inputTokens: 5000 });
  await ask();
  expect(await refusal(ask())).toEqual(['RATE_LIMIT_EXCEEDED', name, waitMs]);
  // Another tenant of the same plan has a count of its own.
  const other = callerOf(limits, { tenant: 'globex', keyId: 'k2' });
  expect(await refusal(admission.admit({ caller: other, inputTokens: 5000 }))).toEqual(['none']);
});

test.each([
  ['tokens_per_day', { tokens_per_day: 1000 }, {}],
  ['tokens_per_month', { tokens_per_month: 1000 }, {}],
  ['key_tokens_per_day', {}, { tokensPerDay: 1000 }],
  ['key_tokens_per_month', {}, { tokensPerMonth: 1000 }],
] as const)('the budget %s counts by the calendar of UTC', async (name, limits, key) => {
  const { admission, clock } = open();
  const caller = callerOf(limits, key);
  const ask = () => admission.admit({ caller, inputTokens: 600 });
  (await ask()).settle({ input: 500, output: 100 });
  const [code, limit, afterMs] = await refusal(ask());
  expect([code, limit]).toEqual(['RATE_LIMIT_EXCEEDED', name]);
  const at = new Date(clock.now());
  const isMonth = name.endsWith('month');
  const next = Date.UTC(
    at.getUTCFullYear(),
    at.getUTCMonth() + (isMonth ? 1 : 0),
    isMonth ? 1 : at.getUTCDate() + 1,
  );
  expect(afterMs).toBe(next - clock.now());
  clock.goOn(Number(afterMs));
  expect(await refusal(ask())).toEqual(['none']);
});

test('a budget of one key leaves the other keys of its tenant alone', async () => {
  const { admission } = open();
  const ask = (keyId: string) =>
    admission.admit({ caller: callerOf({}, { keyId, tokensPerDay: 10 }), inputTokens: 10 });
  await ask('k1');
  expect((await refusal(ask('k1')))[1]).toBe('key_tokens_per_day');
  expect(await refusal(ask('k2'))).toEqual(['none']);
});

test('what the provider counted replaces the estimate, and a call that reached none costs nothing', async () => {
  const { admission } = open();
  const caller = callerOf({ tokens_per_day: 1000, input_tokens_per_minute: 1000 });
  const ask = (inputTokens: number) => admission.admit({ caller, inputTokens });
  const first = await ask(900);
  first.settle('unused');
  first.settle({ input: 900, output: 900 });
  const second = await ask(1000);
  second.settle({ input: 300, output: 200 });
  // 500 are left of the day, 700 of the minute.
  expect((await refusal(ask(600)))[1]).toBe('tokens_per_day');
  (await ask(500)).settle(undefined);
  expect((await refusal(ask(1)))[1]).toBe('tokens_per_day');
});

test('receipts of earlier runs count for a budget: they are asked once in its period', async () => {
  const { admission, asked } = open({ spent: ({ keyId }) => (keyId === undefined ? 700 : 90) });
  const caller = callerOf({ tokens_per_day: 1000 }, { tokensPerMonth: 100 });
  const ask = (inputTokens: number) => admission.admit({ caller, inputTokens });
  expect((await refusal(ask(20)))[1]).toBe('key_tokens_per_month');
  expect(await refusal(ask(10))).toEqual(['none']);
  expect((await refusal(ask(1)))[1]).toBe('key_tokens_per_month');
  expect(asked).toHaveLength(2);
  expect(asked[1]).toMatchObject({ tenant: 'acme', keyId: 'k1' });
});

test('a place is held by heartbeats as long as the call runs, and given back at its end', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const { admission, clock } = open();
    const ask = () =>
      admission.admit({ caller: callerOf({ concurrent_requests: 1 }), inputTokens: 1 });
    const running = await ask();
    for (let seconds = 0; seconds < 120; seconds += 5) {
      clock.goOn(5000);
      vi.advanceTimersByTime(5000);
      // oxlint-disable-next-line no-await-in-loop
      expect((await refusal(ask()))[1]).toBe('concurrent_requests');
    }
    running.settle(undefined);
    const lost = await ask();
    expect(lost).toBeDefined();
  } finally {
    vi.useRealTimers();
  }
});

test('a heartbeat is one tenant’s: a limiter may keep the counts of two on two servers', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const renewed: string[][] = [];
    const limiter = {
      ...limiterOf(async () => ({ refusedBy: undefined, waitMs: 0 })),
      renew: async (leases: readonly LeaseAsk[]) => {
        renewed.push(leases.map(({ tenant }) => tenant));
      },
    };
    const { admission } = open({ limiter });
    const admit = (tenant: string) =>
      admission.admit({
        caller: callerOf({ concurrent_requests: 2 }, { tenant, keyId: tenant }),
        inputTokens: 1,
      });
    const [first, , globex] = [await admit('acme'), await admit('acme'), await admit('globex')];
    vi.advanceTimersByTime(10_000);
    expect(renewed.splice(0)).toEqual([['acme', 'acme'], ['globex']]);
    first.settle(undefined);
    globex.settle(undefined);
    vi.advanceTimersByTime(10_000);
    expect(renewed).toEqual([['acme']]);
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  [
    'throws',
    () => {
      throw new Error('CANARY');
    },
  ],
  ['rejects', () => Promise.reject(new Error('CANARY'))],
  ['hangs', () => new Promise<never>(() => undefined)],
] as const)('a limiter that %s blocks the call, and nobody without a limit', async (_, take) => {
  const { admission } = open({ limiter: limiterOf(take) });
  const limited = { caller: callerOf({ requests_per_minute: 1 }), inputTokens: 1 };
  const before = performance.now();
  expect((await refusal(admission.admit(limited)))[0]).toBe('RATE_LIMITER_UNAVAILABLE');
  expect(performance.now() - before).toBeLessThan(30_000);
  const free = await admission.admit({ caller: callerOf({}), inputTokens: 1 });
  free.settle('unused');
});

test('a limiter that fails at the end of a call disturbs nobody', async () => {
  const fails = async (): Promise<never> => Promise.reject(new Error('CANARY'));
  const take = async () => ({ refusedBy: undefined, waitMs: 0 });
  const ping = async () => undefined;
  const limiter = { ping, take, renew: fails, settle: fails };
  const { admission } = open({ limiter });
  const limits = { concurrent_requests: 1, tokens_per_day: 10 };
  const admitted = await admission.admit({ caller: callerOf(limits), inputTokens: 1 });
  admitted.settle({ input: 5, output: 5 });
  await new Promise((resolve) => setImmediate(resolve));
});

test('a budget whose sum cannot be read blocks the call, and is asked for again', async () => {
  let tries = 0;
  const spent = (): number => {
    tries += 1;
    if (tries === 1) throw new Error('away');
    return 0;
  };
  const { admission } = open({ spent });
  const ask = () => admission.admit({ caller: callerOf({ tokens_per_day: 10 }), inputTokens: 1 });
  expect((await refusal(ask()))[0]).toBe('RATE_LIMITER_UNAVAILABLE');
  expect(await refusal(ask())).toEqual(['none']);
});
