import { faultBody, type FaultBody, type FaultCode } from '../../core/memory-api/faults.ts';
import { parseShape } from '../../core/memory-api/shape.ts';
import { MemoryError, type MemoryFailure } from '../../core/errors.ts';

/** A memory service's refusal of a call. */

interface Refusal {
  readonly reason: MemoryFailure;
  readonly code: FaultCode;
  readonly details: FaultBody['error']['details'];
  /** Nothing is sent before; undefined when the service did not say. */
  readonly retryAfterMs: number | undefined;
}

export class ServiceFault extends MemoryError {
  readonly code: FaultCode;
  readonly details: Refusal['details'];
  readonly retryAfterMs: number | undefined;

  constructor({ reason, code, details, retryAfterMs }: Refusal) {
    super(reason, `The memory service refused (${code}).`);
    this.code = code;
    this.details = details;
    this.retryAfterMs = retryAfterMs;
  }
}

/** A service that asks for more is obeyed up to here: then one more question is no burden. */
const RETRY_AFTER_MS_MAX = 300_000;
/** `x-should-retry: false` with no time given. */
const NO_RETRY_MS = 60_000;

/** The error for an answer that is not 200. */
export function faultIn(answer: {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}): MemoryError {
  const { status, headers, body } = answer;
  const reason = reasonOf(status);
  const { value } = parseShape(faultBody, jsonOrNothing(body));
  if (value === undefined && reason === 'rate_limited') {
    // A gateway in front of the service speaks in its place, and asks for time like it.
    const retryAfterMs = waitIn(headers, undefined);
    return new ServiceFault({
      reason,
      code: 'RATE_LIMIT_EXCEEDED',
      details: undefined,
      retryAfterMs,
    });
  }
  if (value === undefined) return new MemoryError(reason, `The memory service answered ${status}.`);
  const { code, details, retry } = value.error;
  const retryAfterMs = waitIn(headers, retry.after_ms);
  return new ServiceFault({ reason, code, details, retryAfterMs });
}

function reasonOf(status: number): MemoryFailure {
  if (status === 401 || status === 403) return 'denied';
  if (status === 429) return 'rate_limited';
  if (status === 408 || status === 504) return 'timeout';
  return status >= 500 ? 'unavailable' : 'invalid';
}

function waitIn(headers: ReadonlyMap<string, string>, afterMs: number | undefined) {
  const precise = /^\d{1,9}$/.exec(headers.get('retry-after-ms') ?? '')?.[0];
  const seconds = /^\d{1,6}$/.exec(headers.get('retry-after') ?? '')?.[0];
  const waits = [
    precise === undefined ? undefined : Number(precise),
    seconds === undefined ? undefined : Number(seconds) * 1000,
    afterMs,
    headers.get('x-should-retry') === 'false' ? NO_RETRY_MS : undefined,
  ];
  const wait = waits.find((one) => one !== undefined);
  return wait === undefined ? undefined : Math.min(wait, RETRY_AFTER_MS_MAX);
}

function jsonOrNothing(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
