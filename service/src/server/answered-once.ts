import type { AnswerKey, AnswerState, BegunAnswer, TenantStore } from '../ports/service-store.ts';
import { ServiceFault } from './fault.ts';
import { keepLease, LEASE_MS } from './leases.ts';
import { MemoryError } from '../../../src/core/errors.ts';

/**
 * Calls with an Idempotency-Key: the same call again gets the answer of the first one, also from
 * another node, and one of two at the same moment does the work.
 */

const IN_PROGRESS_MS = 500;

export interface AskedOnce {
  readonly store: TenantStore;
  readonly key: AnswerKey;
  /** sha256 of what is asked, base64url. */
  readonly requestHash: string;
  /** Names this call among all that ever were. */
  readonly holder: string;
  readonly signal: AbortSignal;
}

export interface OnceDone<Result> {
  readonly result: Result;
  /** For the same call again; undefined: that does the work again. */
  readonly kept: { readonly body: string; readonly at: number } | undefined;
}

/** The body that an earlier call kept, or the result of the work. Throws ServiceFault. */
export async function answeredOnce<Result>(
  asked: AskedOnce,
  work: () => Promise<OnceDone<Result>>,
): Promise<{ readonly keptBody: string } | { readonly result: Result }> {
  const { store, key, requestHash, holder } = asked;
  const begun = { holder, requestHash, ms: LEASE_MS };
  const found = await begin(asked, begun);
  if (found.state !== 'begun') {
    const known = found.state === 'kept' ? found.answer : found;
    if (known.requestHash !== requestHash) throw conflict();
    if (found.state === 'kept') return { keptBody: found.answer.body };
    const message = 'A call with this Idempotency-Key is still running.';
    throw new ServiceFault('IDEMPOTENCY_IN_PROGRESS', message, { afterMs: IN_PROGRESS_MS });
  }
  const stop = keepLease(() => store.beginAnswer(key, begun));
  let isKept = false;
  try {
    const { result, kept } = await work();
    if (kept !== undefined) await store.keepAnswer(key, { requestHash, ...kept });
    isKept = kept !== undefined;
    return { result };
  } finally {
    await stop();
    // A call that is not left ends by itself.
    if (!isKept) await store.leaveAnswer(key, holder).catch(() => undefined);
  }
}

/** Nothing stays begun when the caller does not wait for it any more. */
async function begin(
  { store, key, holder, signal }: AskedOnce,
  begun: BegunAnswer,
): Promise<AnswerState> {
  const asked = store.beginAnswer(key, begun);
  const late = new Promise<'late'>((resolve) => {
    if (signal.aborted) resolve('late');
    signal.addEventListener('abort', () => resolve('late'), { once: true });
  });
  const found = await Promise.race([asked, late]);
  if (found !== 'late') return found;
  asked.then(() => store.leaveAnswer(key, holder)).catch(() => undefined);
  throw new MemoryError('timeout', 'The store did not answer in time.');
}

function conflict(): ServiceFault {
  const message = 'This Idempotency-Key was used for another call before.';
  return new ServiceFault('IDEMPOTENCY_CONFLICT', message);
}
