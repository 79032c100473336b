import type { FaultCode } from '../../core/memory-api/faults.ts';
import { ServiceFault } from './service-link.ts';
import { MemoryError, type MemoryFailure } from '../../core/errors.ts';

/**
 * Decides whether svc may call the memory service now. It pauses calls after repeated failures (a circuit breaker), for
 * the time for which the service asks, after the service has refused the key, and after a false proof.
 */

/** After five failures in a row svc pauses for fifteen seconds, the time in which a service restarts. */
const FAILURES_MAX = 5;
const OPEN_MS = 15_000;
/** How long svc pauses after the service has refused the key. An operator may permit the key meanwhile. */
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

  /** Counts a failed call. `error`: what the call rejected with. */
  failed(error: unknown): void {
    if (!(error instanceof MemoryError)) return;
    if (error instanceof ServiceFault) this.#refused(error);
    else if (error.reason === 'denied') this.close('denied', DENIED_MS);
    else this.#failures += 1;
    // The count stays after the pause, so that one more failure begins a new pause (half-open).
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
      // The service has answered, so it is not down.
      this.#failures = 0;
      this.close(reason, retryAfterMs ?? 1000);
    } else if (reason === 'unavailable' && retryAfterMs !== undefined) {
      this.close(reason, retryAfterMs);
    } else if (reason === 'unavailable' || reason === 'timeout') this.#failures += 1;
    // Every other refusal concerns only this call.
    else this.#failures = 0;
  }
}

/** Says whether the service refuses the key itself, so that every call with it would fail. */
export function isKeyRefused(code: FaultCode): boolean {
  return code.startsWith('AUTH_') || code === 'TENANT_SUSPENDED';
}
