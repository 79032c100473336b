import type { AnswerKey, AnswerState, BegunAnswer, KeptAnswer } from '../../ports/service-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { answerLeaseName, LeaseTable } from './leases.ts';

/** Answers by Idempotency-Key, to be given once more. Bounded in number and age. */

const AGE_MAX_MS = 24 * 3600 * 1000;
/** An answer has 10 kB at most. */
const ROWS_MAX = 20_000;
/** Pruning on every write would cost more than the write. */
const WRITES_PER_PRUNE = 64;

export class Answers {
  readonly #database: Database;
  readonly #leases: LeaseTable;
  #writes = 0;

  constructor(database: Database) {
    this.#database = database;
    this.#leases = new LeaseTable(database);
  }

  /** Takes the lease first: a holder that then finds no answer is the only one working on it. */
  begin(tenant: string, asked: AnswerKey, { holder, requestHash, ms }: BegunAnswer): AnswerState {
    const name = answerLeaseName(asked);
    const hash = this.#leases.take(tenant, { name, holder, note: requestHash, ms });
    if (hash !== undefined) return { state: 'running', requestHash: hash };
    const answer = this.find(asked, Date.now());
    if (answer === undefined) return { state: 'begun' };
    this.#leases.end(tenant, { name, holder });
    return { state: 'kept', answer };
  }

  find({ keyId, idempotencyKey }: AnswerKey, now: number): KeptAnswer | undefined {
    return this.#database.get<KeptAnswer>(
      `SELECT request_hash AS requestHash, body, at FROM answers
       WHERE key = ? AND idempotency_key = ? AND at > ?`,
      keyId,
      idempotencyKey,
      now - AGE_MAX_MS,
    );
  }

  /** Not synced: after a power cut the records are there, and answered as duplicates. */
  keep(tenant: string, asked: AnswerKey, { requestHash, body, at }: KeptAnswer): void {
    const { keyId, idempotencyKey } = asked;
    this.#database.unsyncedTransaction(() => {
      this.#leases.endAnswer(tenant, asked);
      this.#database.run(
        `INSERT INTO answers (key, idempotency_key, request_hash, body, at) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET request_hash = excluded.request_hash, body = excluded.body,
           at = excluded.at`,
        keyId,
        idempotencyKey,
        requestHash,
        body,
        at,
      );
      this.#writes += 1;
      if (this.#writes % WRITES_PER_PRUNE === 1) this.#prune(at);
    });
  }

  #prune(now: number): void {
    this.#database.run(
      `DELETE FROM answers WHERE at <= ? OR rowid IN
        (SELECT rowid FROM answers ORDER BY at DESC LIMIT -1 OFFSET ${ROWS_MAX})`,
      now - AGE_MAX_MS,
    );
  }
}
