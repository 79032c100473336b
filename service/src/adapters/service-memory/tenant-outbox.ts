import { groupBy } from '../../../../src/core/bytes/batches.ts';
import type { CaptureState, Memory, MemoryRecord } from '../../../../src/ports/memory.ts';
import type { Outbox } from '../../../../src/ports/outbox.ts';
import { JournalOutbox } from '../journals/outbox.ts';
import type { LedgerRow } from '../../../../src/ports/ledger.ts';
import type { ServiceStore } from '../../ports/service-store.ts';
import type { LedgerStore } from '../journals/ledger.ts';

/**
 * The outboxes of all tenants of a service, in one journal. A record waits under `tenant:space`: no
 * space and no tenant has a colon in its name, so it can only come back to its own tenant.
 */

/**
 * A retry is cheap inside the process of the store, and a recovered database soon gets the queued
 * captures.
 */
const RETRY_MS_MAX = 1000;

interface TenantOutboxOptions {
  readonly folder: string;
  readonly memoryOf: (tenant: string) => Pick<Memory, 'capture'>;
  readonly report: (line: string) => void;
}

export class TenantOutboxes {
  readonly #journal: JournalOutbox;

  constructor({ folder, memoryOf, report }: TenantOutboxOptions) {
    const capture = (records: readonly MemoryRecord[], signal: AbortSignal) =>
      deliver(records, (tenant, own) => memoryOf(tenant).capture(own, signal));
    const target = { capture };
    this.#journal = new JournalOutbox({ folder, target, retryMsMax: RETRY_MS_MAX, report });
  }

  of(tenant: string): Outbox {
    const journal = this.#journal;
    return {
      keep: (records) =>
        journal.keep(records.map((one) => ({ ...one, space: `${tenant}:${one.space}` }))),
      flush: (withinMs) => journal.flush(withinMs),
      stored: (withinMs) => journal.stored(withinMs),
      get waiting() {
        return journal.waiting;
      },
    };
  }

  flush(withinMs: number): Promise<void> {
    return this.#journal.flush(withinMs);
  }

  /** The store may have lost what it said that it holds: the same words are delivered again. */
  forgetSettled(): void {
    this.#journal.forgetSettled();
  }

  close(): void {
    this.#journal.close();
  }
}

type Capture = (
  tenant: string,
  records: readonly MemoryRecord[],
) => Promise<readonly CaptureState[]>;

/** Each tenant's records go to its own memory; the states come back in the order of the records. */
async function deliver(
  records: readonly MemoryRecord[],
  capture: Capture,
): Promise<readonly CaptureState[]> {
  const states: CaptureState[] = records.map(() => 'rejected');
  const placed = records.map((record, place) => ({ ...splitSpace(record), place }));
  for (const [tenant, own] of groupBy(placed, (one) => one.tenant)) {
    // oxlint-disable-next-line no-await-in-loop -- One store writes for all of them.
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
 * The table of the ledger in a service's store. The key of an entry names its tenant (`keyOf` in
 * core/ledger/entries.ts), and each row is read and written through that tenant's part of the store.
 */
export function tenantLedgerStore(store: Pick<ServiceStore, 'of'>): LedgerStore {
  return {
    findEntries: async (keys) => {
      const found = await Promise.all(
        [...groupBy(keys.map(splitKey), ({ tenant }) => tenant)].map(([tenant, own]) =>
          store.of(tenant).findLedger(own.map(({ key }) => key)),
        ),
      );
      return found.flat();
    },
    recordEntries: async (rows) => {
      const placed = rows.map((row) => ({ row, tenant: splitKey(row.key).tenant }));
      for (const [tenant, own] of groupBy(placed, (one) => one.tenant)) {
        // oxlint-disable-next-line no-await-in-loop -- One store writes for all of them.
        await store.of(tenant).recordLedger(own.map(({ row }): LedgerRow => row));
      }
    },
  };
}

/** `t:` and the tenant, then the key in it. */
function splitKey(key: string): { readonly tenant: string; readonly key: string } {
  const [, tenant = ''] = key.split(':', 2);
  return { tenant, key };
}
