import type { Clock } from '../../../src/ports/clock.ts';
import type { ServiceStore, TenantStore } from '../ports/service-store.ts';
import { underLease } from './leases.ts';
import { MemoryError } from '../../../src/core/errors.ts';

/** Purges that were begun: one process erases the records of a purge, and another continues if it dies. */

/** Half of a lease: another node continues the purge of a dead node within a minute. */
const PERIOD_MS = 15_000;

export interface PurgeParts {
  readonly store: ServiceStore;
  readonly clock: Clock;
  readonly randomBytes: (count: number) => Uint8Array;
}

export class PurgeJob {
  readonly #parts: PurgeParts;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(parts: PurgeParts) {
    this.#parts = parts;
  }

  /** A failure waits for the next look. */
  start(): void {
    this.#timer = setInterval(() => {
      this.#running = this.#running.then(() => this.finish()).catch(() => undefined);
    }, PERIOD_MS).unref();
  }

  /** Resolves when no look is under way any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  /** Continues purges that no process works on. */
  async finish(): Promise<void> {
    for (const { tenant, purgeId } of await this.#parts.store.unfinishedPurges()) {
      // oxlint-disable-next-line no-await-in-loop -- One after the other: calls pass in between.
      await erase({ ...this.#parts, store: this.#parts.store.of(tenant) }, purgeId);
    }
  }
}

/**
 * Resolves with the time when the last record was gone; undefined if that is not so yet: another process
 * erases them now, or the store cannot erase them now.
 */
export async function erase(
  parts: Omit<PurgeParts, 'store'> & { readonly store: TenantStore },
  purgeId: string,
): Promise<number | undefined> {
  const { store, clock } = parts;
  const erasing = underLease(parts, `purge:${purgeId}`, async () => {
    for (;;) {
      const now = clock.now();
      // One part after the other, on purpose: recalls pass in between.
      // oxlint-disable-next-line no-await-in-loop
      if (await store.continuePurge(purgeId, now)) return now;
    }
  });
  const done = await erasing.catch((error: unknown) => {
    if (error instanceof MemoryError) return undefined;
    throw error;
  });
  return done?.result;
}
