import { ServiceFault } from './service-link.ts';
import { MemoryError, type MemoryFailure } from '../../core/errors.ts';

/**
 * Decides whether the service is called at all. A dead or lying service costs one refusal in
 * memory, a service that asked for time gets it, and a refused key is not sent again and again.
 */

/** Five in a row are no accident; fifteen seconds are a restart. */
const FAILURES_MAX = 5;
const OPEN_MS = 15_000;
/** How long a refused key is not used: it may have been renewed on the other side. */
const DENIED_MS = 300_000;

export class ServiceGate {
  readonly #now: () => number;
  #failures = 0;
  #closedUntil = -Infinity;
  #reason: MemoryFailure = 'unavailable';

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Throws MemoryError when nothing is to be sent now. */
  admit(): void {
    if (this.#now() >= this.#closedUntil) return;
    throw new MemoryError(this.#reason, 'svc does not call the memory service for a while.');
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** Called with everything that a call rejected with. */
  failed(error: unknown): void {
    if (!(error instanceof MemoryError)) return;
    if (error instanceof ServiceFault) this.#refused(error);
    else if (error.reason === 'denied') this.close('denied', DENIED_MS);
    else this.#failures += 1;
    // Half-open after the pause: one more failure opens it again.
    if (this.#failures >= FAILURES_MAX) this.close('unavailable', OPEN_MS);
  }

  close(reason: MemoryFailure, milliseconds: number): void {
    const until = this.#now() + milliseconds;
    if (until <= this.#closedUntil) return;
    this.#closedUntil = until;
    this.#reason = reason;
  }

  /** The key is good again. */
  open(): void {
    if (this.#reason === 'denied') this.#closedUntil = -Infinity;
  }

  #refused({ code, reason, retryAfterMs }: ServiceFault): void {
    if (code.startsWith('AUTH_') || code === 'TENANT_SUSPENDED') this.close('denied', DENIED_MS);
    else if (reason === 'rate_limited') {
      // The service answers. Earlier failures must not turn its requested pause into an outage.
      this.#failures = 0;
      this.close(reason, retryAfterMs ?? 1000);
    } else if (reason === 'unavailable' && retryAfterMs !== undefined) {
      this.close(reason, retryAfterMs);
    } else if (reason === 'unavailable' || reason === 'timeout') this.#failures += 1;
    // All other refusals are of this one call; the service is well.
    else this.#failures = 0;
  }
}
