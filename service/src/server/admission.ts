import { limitsOfCall, type LimitAsk, type LimitedCall } from '../core/limits.ts';
import type { LimitAnswer, Limiter } from '../ports/limiter.ts';
import { withinDeadline } from '../../../src/proxy/deadline.ts';
import { ServiceFault } from './fault.ts';

/**
 * Accepts a call if its limits allow it. If the limiter fails or does not answer, the call is
 * refused, so that a fault never lets a caller exceed the plan.
 */

/** A limiter on the same network answers in a millisecond. */
const LIMITER_MS = 1000;
const RETRY_AFTER_MS = 2000;

/** Throws ServiceFault RATE_LIMIT_EXCEEDED or RATE_LIMITER_UNAVAILABLE. */
export async function checkLimits(limiter: Limiter, call: LimitedCall): Promise<void> {
  await takeLimits(limiter, limitsOfCall(call));
}

/** Throws ServiceFault RATE_LIMIT_EXCEEDED or RATE_LIMITER_UNAVAILABLE. */
export async function takeLimits(
  limiter: Limiter,
  asks: readonly LimitAsk[],
  knownOf: (bucket: string) => Promise<number> = async () => 0,
): Promise<void> {
  // A call without a limit does not use the limiter, so a failed limiter does not stop it.
  if (asks.length === 0) return;
  let answer = await askLimiter(limiter, asks);
  if (answer.uncounted !== undefined) {
    answer = await askLimiter(limiter, await withKnown(asks, answer.uncounted, knownOf));
  }
  // It lost its counts again meanwhile.
  if (answer.uncounted !== undefined) throw limiterUnavailable();
  const { refusedBy, waitMs } = answer;
  if (refusedBy === undefined) return;
  const message = `The limit ${refusedBy} is reached.`;
  throw new ServiceFault('RATE_LIMIT_EXCEEDED', message, { afterMs: waitMs, param: refusedBy });
}

function withKnown(
  asks: readonly LimitAsk[],
  uncounted: readonly string[],
  knownOf: (bucket: string) => Promise<number>,
): Promise<LimitAsk[]> {
  const known = asks.map(async (ask) => {
    if (ask.kind !== 'budget' || !uncounted.includes(ask.bucket)) return ask;
    return { ...ask, known: await knownOf(ask.bucket) };
  });
  return Promise.all(known);
}

async function askLimiter(limiter: Limiter, asks: readonly LimitAsk[]): Promise<LimitAnswer> {
  try {
    return await askWithin(limiter, LIMITER_MS, (signal) => askTwice(limiter, asks, signal));
  } catch {
    throw limiterUnavailable();
  }
}

/** Timers and signals are for a limiter that may be silent. */
export function askWithin<Answer>(
  { isOwn }: Limiter,
  ms: number,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  return isOwn === true ? ask(UNENDING) : withinDeadline(ms, ask);
}

const UNENDING = new AbortController().signal;

/** An error gets one more try at once, a silence none: the deadline has passed by then. */
async function askTwice(
  limiter: Limiter,
  asks: readonly LimitAsk[],
  signal: AbortSignal,
): Promise<LimitAnswer> {
  try {
    return await limiter.take(asks, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    return limiter.take(asks, signal);
  }
}

export function limiterUnavailable(): ServiceFault {
  const message = 'The service cannot check limits now, so it refuses the call.';
  return new ServiceFault('RATE_LIMITER_UNAVAILABLE', message, { afterMs: RETRY_AFTER_MS });
}
