import type { FaultCode } from '../../core/memory-api/faults.ts';
import { ServiceFault } from './service-link.ts';
import { MemoryError, type MemoryFailure } from '../../core/errors.ts';

/**
 * Decides whether the service is called at all. A dead or wrong service costs one refusal in memory, a service that
 * asked for a pause gets it, and a refused key is not sent repeatedly.
 */

/** Circuit breaker: after five failures in a row svc pauses for fifteen seconds, the time of a restart. */
const FAILURES_MAX = 5;
const OPEN_MS = 15_000;
/** How long a refused key is not used. It may be renewed meanwhile. */
const DENIED_MS = 300_000;

export class ServiceGate {
  readonly #now: () => number;
  #failures = 0;
  #closedUntil = -Infinity;
  #reason: MemoryFailure = 'unavailable';

  /** `now`: milliseconds of a monotonic clock. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Throws MemoryError if nothing may be sent now. */
  admit(): void {
    if (this.#now() >= this.#closedUntil) return;
    throw new MemoryError(this.#reason, 'svc does not call the memory service for a while.');
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** Notes a failed call. Call it with everything that a call rejects with. */
  failed(error: unknown): void {
    if (!(error instanceof MemoryError)) return;
    if (error instanceof ServiceFault) this.#refused(error);
    else if (error.reason === 'denied') this.close('denied', DENIED_MS);
    else this.#failures += 1;
    // After the pause one more failure is enough for a new pause (half-open).
    if (this.#failures >= FAILURES_MAX) this.close('unavailable', OPEN_MS);
  }

  close(reason: MemoryFailure, milliseconds: number): void {
    const until = this.#now() + milliseconds;
    if (until <= this.#closedUntil) return;
    this.#closedUntil = until;
    this.#reason = reason;
  }

  /** Ends the pause after a refused key, because the service accepts the key again. */
  open(): void {
    if (this.#reason === 'denied') this.#closedUntil = -Infinity;
  }

  #refused({ code, reason, retryAfterMs }: ServiceFault): void {
    if (isKeyRefused(code)) this.close('denied', DENIED_MS);
    else if (reason === 'rate_limited') {
      // The service answered, so earlier failures do not count towards an outage.
      this.#failures = 0;
      this.close(reason, retryAfterMs ?? 1000);
    } else if (reason === 'unavailable' && retryAfterMs !== undefined) {
      this.close(reason, retryAfterMs);
    } else if (reason === 'unavailable' || reason === 'timeout') this.#failures += 1;
    // Every other refusal concerns only this call; the service works.
    else this.#failures = 0;
  }
}

/** Says whether the service refuses the key itself, so that every call with it would fail. */
export function isKeyRefused(code: FaultCode): boolean {
  return code.startsWith('AUTH_') || code === 'TENANT_SUSPENDED';
}
