import { type AuditEvent, type AuditNote, chainEvent } from '../../core/audit.ts';
import type { Page } from '../../ports/control-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';

/** Audit events as rows. Each carries the hash of the one before it in its tenant. */
export class AuditTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Call it within the transaction of what the event tells. */
  chain(tenant: string, note: AuditNote): void {
    const last = this.#database.get<{ number: number; hash: string }>(
      'SELECT number, hash FROM audit WHERE tenant = ? ORDER BY number DESC LIMIT 1',
      tenant,
    );
    const event = chainEvent(tenant, note, last);
    this.#database.run(
      'INSERT INTO audit (tenant, number, at, hash, event) VALUES (?, ?, ?, ?, ?)',
      tenant,
      event.number,
      event.at,
      event.hash,
      JSON.stringify(event),
    );
  }

  /** The last event of each tenant stays: the next one carries its hash. */
  dropBefore(at: number): void {
    this.#database.run(
      `DELETE FROM audit WHERE at < ? AND number <
        (SELECT max(later.number) FROM audit later WHERE later.tenant = audit.tenant)`,
      at,
    );
  }

  list(tenant: string, { limit, after }: Page): AuditEvent[] {
    return this.#database
      .all<{ event: string }>(
        'SELECT event FROM audit WHERE tenant = ? AND number < ? ORDER BY number DESC LIMIT ?',
        tenant,
        Number(after ?? Number.MAX_SAFE_INTEGER),
        limit,
      )
      .map(({ event }) => eventOf(event));
  }
}

export function eventOf(text: string): AuditEvent {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only chain() writes it.
  return JSON.parse(text) as AuditEvent;
}
