import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteBudget, type Lease } from '../../src/http/request-bodies.ts';

const never = new AbortController().signal;
const limits = { bytesMax: 100, waitMs: 30, waitingMax: 2 };

describe('R38: one budget of bytes over all bodies', () => {
  test('a body that does not fit waits until another one is released', async () => {
    const budget = new ByteBudget({ ...limits, waitMs: 5_000 });
    const first = await budget.take(80, never);
    let isIn = false;
    const second = budget.take(30, never).then((lease) => {
      isIn = true;
      return lease;
    });
    await Promise.resolve();
    expect(isIn).toBe(false);
    first.release();
    (await second).release();
    await budget.take(100, never);
  });

  test('a small body passes those that wait for much', async () => {
    const budget = new ByteBudget({ ...limits, waitMs: 5_000 });
    const first = await budget.take(80, never);
    const large = budget.take(90, never);
    (await budget.take(20, never)).release();
    first.release();
    await large;
  });

  test('it is refused when it waited too long, and at once when the line is full', async () => {
    // Long enough that a busy machine asks the third time within it.
    const waitMs = 500;
    const budget = new ByteBudget({ ...limits, waitMs });
    await budget.take(100, never);
    const startedAt = performance.now();
    const waiting = Promise.allSettled([budget.take(1, never), budget.take(1, never)]);
    await expect(budget.take(1, never)).rejects.toMatchObject({ code: 'TOO_BUSY', retry: true });
    expect(performance.now() - startedAt).toBeLessThan(waitMs);
    const refused = { status: 'rejected', reason: { code: 'TOO_BUSY' } };
    expect(await waiting).toMatchObject([refused, refused]);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(waitMs - 2);
  });

  test('a client that goes leaves the line to others', async () => {
    const budget = new ByteBudget({ ...limits, waitMs: 5_000, waitingMax: 1 });
    const first = await budget.take(100, never);
    const client = new AbortController();
    const gone = budget.take(1, client.signal);
    client.abort(new Error('gone'));
    await expect(gone).rejects.toThrow('gone');
    const next = budget.take(1, never);
    first.release();
    await next;
  });

  test('a body whose length nobody said takes its room as it grows, or is refused', async () => {
    const budget = new ByteBudget(limits);
    const lease = await budget.take(0, never);
    lease.resize(60);
    expect(() => lease.resize(101)).toThrow('Too many large requests');
    (await budget.take(40, never)).release();
    lease.resize(10);
    await budget.take(90, never);
  });

  test('one of several owners cannot take what the others need, whatever it announces', async () => {
    const budget = new ByteBudget({ ...limits, waitMs: 5_000 });
    // One body of any size may come while its owner has no other.
    (await budget.take(100, never, 'acme')).release();
    const first = await budget.take(40, never, 'acme');
    const second = await budget.take(35, never, 'acme');
    let isIn = false;
    const third = budget.take(10, never, 'acme').then((lease) => {
      isIn = true;
      return lease;
    });
    expect(() => second.resize(36)).toThrow('Too many large requests');
    await budget.take(25, never, 'globex');
    expect(isIn).toBe(false);
    first.release();
    first.release();
    await third;
    // It is the only one of its owner now, and may grow as far as there is room.
    (await third).release();
    second.resize(75);
  });

  test('whatever is taken and given back, the sum stays within the budget and all comes back', async () => {
    const steps = fc.array(fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 120 })), { maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(steps, async (drawn) => {
        const budget = new ByteBudget({ bytesMax: 100, waitMs: 1, waitingMax: 0 });
        const held: { lease: Lease; bytes: number }[] = [];
        for (const [kind, bytes] of drawn) {
          const sum = held.reduce((all, one) => all + one.bytes, 0);
          if (kind === 0) held.pop()?.lease.release();
          else {
            const taken = await budget.take(bytes, never).catch(() => undefined);
            expect(taken !== undefined).toBe(sum + bytes <= 100);
            if (taken !== undefined) held.push({ lease: taken, bytes });
          }
        }
        for (const { lease } of held) {
          lease.release();
          lease.release();
        }
        await budget.take(100, never);
      }),
    );
  });
});
