import type { Lease, StandingLease } from '../../ports/leases.ts';
import type { AnswerKey } from '../../ports/service-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';

/** The lease of the call that works on an answer. */
export function answerLeaseName({ keyId, idempotencyKey }: AnswerKey): string {
  return `answer:${keyId}:${idempotencyKey}`;
}

/** Leases as rows. One machine has one clock. */
export class LeaseTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  take(tenant: string, { name, holder, note, ms }: Lease): string | undefined {
    const now = Date.now();
    let taken = 0;
    this.#database.unsyncedTransaction(() => {
      this.#database.run('DELETE FROM leases WHERE ends <= ?', now);
      taken = this.#database.run(
        `INSERT INTO leases (tenant, name, holder, note, ends) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (tenant, name) DO UPDATE SET note = excluded.note, ends = excluded.ends
         WHERE leases.holder = excluded.holder`,
        tenant,
        name,
        holder,
        note,
        now + ms,
      );
    });
    return taken > 0 ? undefined : (this.#find(tenant, name)?.note ?? '');
  }

  renew(tenant: string, { name, holder, ms }: Lease): boolean {
    const now = Date.now();
    const sql = `UPDATE leases SET ends = ?
      WHERE tenant = ? AND name = ? AND holder = ? AND ends > ?`;
    return this.#database.run(sql, now + ms, tenant, name, holder, now) > 0;
  }

  end(tenant: string, { name, holder }: Pick<Lease, 'name' | 'holder'>): void {
    const sql = 'DELETE FROM leases WHERE tenant = ? AND name = ? AND holder = ?';
    this.#database.run(sql, tenant, name, holder);
  }

  /** Ends the lease of any holder, because the answer exists now. */
  endAnswer(tenant: string, asked: AnswerKey): void {
    const sql = 'DELETE FROM leases WHERE tenant = ? AND name = ?';
    this.#database.run(sql, tenant, answerLeaseName(asked));
  }

  list(tenant: string, start: string): StandingLease[] {
    return this.#database.all<StandingLease>(
      `SELECT name, holder, note FROM leases
       WHERE tenant = ? AND substr(name, 1, length(?)) = ? AND ends > ? ORDER BY name`,
      tenant,
      start,
      start,
      Date.now(),
    );
  }

  clear(): void {
    this.#database.run('DELETE FROM leases');
  }

  #find(tenant: string, name: string): StandingLease | undefined {
    const sql = 'SELECT name, holder, note FROM leases WHERE tenant = ? AND name = ?';
    return this.#database.get<StandingLease>(sql, tenant, name);
  }
}
