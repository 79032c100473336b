import { groupBy } from '../../../../src/core/bytes/batches.ts';
import type { CaptureState, Memory, MemoryRecord } from '../../../../src/ports/memory.ts';
import type { Outbox } from '../../../../src/ports/outbox.ts';
import { StateOutbox } from '../../../../src/adapters/state/outbox.ts';
import { StateFile } from '../../../../src/adapters/state/state-file.ts';
import { StateWriter } from '../../../../src/adapters/state/state-writer.ts';
import { DESCRIPTORS } from '../../../../src/adapters/store/descriptors.ts';
import { loadDriver } from '../../../../src/adapters/store/driver.ts';
import type { ServiceStore } from '../../ports/service-store.ts';
import type { LedgerStore } from '../journals/ledger.ts';

/**
 * The outboxes of all tenants of a service, in one table. Captures wait there until the store has them. The space of a
 * waiting record is `tenant:space`. Neither name contains a colon, so a record returns to its own tenant.
 */

const TARGET = 'tenants';
/** Bound on SQLite's page cache. The outbox usually has only the captures of one second. */
const CACHE_KIB = 2048;
/**
 * How long closing waits for writes that another connection's lock delays, usually for milliseconds. Writes that still
 * wait at the end, as on a full disk, are tried once more and then dropped.
 */
const CLOSE_MS = 2000;
/**
 * Longest pause between attempts to deliver. An attempt is cheap, and a database that works again gets captures soon.
 */
const RETRY_MS_MAX = 1000;

interface TenantOutboxOptions {
  readonly folder: string;
  readonly memoryOf: (tenant: string) => Pick<Memory, 'capture'>;
  readonly report: (line: string) => void;
}

export class TenantOutboxes {
  readonly #leaveDescriptors = DESCRIPTORS.addUser();
  readonly #file: StateFile;
  readonly #writer: StateWriter;
  readonly #outbox: StateOutbox;

  constructor({ folder, memoryOf, report }: TenantOutboxOptions) {
    const place = { folder, driver: loadDriver, busyMs: 0, cacheKib: CACHE_KIB, creates: true };
    const file = new StateFile({ ...place, descriptors: DESCRIPTORS, report });
    const writer = new StateWriter({ file, checkpoint: () => this.eraseDelivered(), report });
    const capture = (records: readonly MemoryRecord[], signal: AbortSignal) =>
      deliver(records, (tenant, own) => memoryOf(tenant).capture(own, signal));
    const parts = { file, writer, name: TARGET, target: { capture }, retryMsMax: RETRY_MS_MAX };
    this.#outbox = new StateOutbox({ ...parts, report });
    [this.#file, this.#writer] = [file, writer];
  }

  of(tenant: string): Outbox {
    return {
      keep: (records) =>
        this.#outbox.keep(records.map((one) => ({ ...one, space: `${tenant}:${one.space}` }))),
      flush: (withinMs) => this.#outbox.flush(withinMs),
    };
  }

  flush(withinMs: number): Promise<void> {
    return this.#outbox.flush(withinMs);
  }

  /** Makes the outboxes accept all captures again, because the store may have lost those that it confirmed. */
  forgetSettled(): void {
    this.#outbox.forgetSettled();
  }

  /** Erases delivered captures from the outbox's write-ahead log, because a purge must leave no text in any file. */
  eraseDelivered(): void {
    try {
      this.#file.use((rows) => rows.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
    } catch {
      // The next checkpoint empties the log. The writer reports a full disk.
    }
  }

  /** Stops delivering. Waiting captures stay in the file for the next process. */
  async close(): Promise<void> {
    this.#outbox.close();
    await this.#writer.caughtUp(CLOSE_MS);
    this.#writer.close();
    this.#file.close();
    this.#leaveDescriptors();
  }
}

type Capture = (
  tenant: string,
  records: readonly MemoryRecord[],
) => Promise<readonly CaptureState[]>;

/** Delivers each tenant's records to its own memory. Returns the states in the records' order. */
async function deliver(
  records: readonly MemoryRecord[],
  capture: Capture,
): Promise<readonly CaptureState[]> {
  const states: CaptureState[] = records.map(() => 'rejected');
  const placed = records.map((record, place) => ({ ...splitSpace(record), place }));
  for (const [tenant, own] of groupBy(placed, (one) => one.tenant)) {
    // oxlint-disable-next-line no-await-in-loop -- All tenants share one store that writes.
    const found = await capture(
      tenant,
      own.map(({ record }) => record),
    );
    for (const [at, { place }] of own.entries()) states[place] = found[at] ?? 'rejected';
  }
  return states;
}

function splitSpace(record: MemoryRecord): {
  readonly tenant: string;
  readonly record: MemoryRecord;
} {
  const colon = record.space.indexOf(':');
  const space = record.space.slice(colon + 1);
  return { tenant: record.space.slice(0, Math.max(colon, 0)), record: { ...record, space } };
}

/**
 * The ledger's table in a service's store. An entry's key names its tenant (`keyOf` in src/core/ledger/entries.ts), and
 * each row is read and written through that tenant's part of the store.
 */
export function tenantLedgerStore(store: Pick<ServiceStore, 'of'>): LedgerStore {
  return {
    findEntries: async (keys) => {
      const found = await Promise.all(
        [...groupBy(keys, tenantIn)].map(([tenant, own]) => store.of(tenant).findLedger(own)),
      );
      return found.flat();
    },
    recordEntries: async (rows) => {
      for (const [tenant, own] of groupBy(rows, ({ key }) => tenantIn(key))) {
        // oxlint-disable-next-line no-await-in-loop -- All tenants share one store that writes.
        await store.of(tenant).recordLedger(own);
      }
    },
  };
}

/** Returns the tenant in an entry's key, which begins with `t:`, the tenant and a colon. */
function tenantIn(key: string): string {
  return key.split(':', 2)[1] ?? '';
}
