import { createHash } from 'node:crypto';
import type { Database } from './database.ts';

/**
 * The quotes of forgotten texts that blocks of the ledger may still have. The ledger is in another file,
 * and no transaction spans both. So the quotes are noted in the transaction that deletes the texts, and
 * the next process that opens the store ends a call that a kill interrupted. Only hashes are noted: the words are gone.
 */

export function noteForgetting(database: Database, quotes: ReadonlySet<string>): void {
  for (const quote of quotes) {
    database.run('INSERT OR IGNORE INTO forgetting (quote) VALUES (?)', hashOf(quote));
  }
}

export interface Forgetting {
  readonly size: number;
  has(quote: string): boolean;
  /** No block has them any more. */
  end(): void;
}

export function forgettingIn(database: Database): Forgetting {
  const rows = database.all<{ readonly quote: string }>('SELECT quote FROM forgetting');
  const hashes = new Set(rows.map(({ quote }) => quote));
  return {
    size: hashes.size,
    has: (quote) => hashes.has(hashOf(quote)),
    // Another process may have noted more meanwhile.
    end: () => {
      const sql = 'DELETE FROM forgetting WHERE quote IN (SELECT value FROM json_each(?))';
      database.run(sql, JSON.stringify([...hashes]));
    },
  };
}

/** 16 bytes of SHA-256: a forget of 50,000 memories has some 500,000 quotes. */
function hashOf(quote: string): string {
  return createHash('sha256').update(quote).digest('base64url').slice(0, 22);
}
