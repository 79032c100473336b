import { createHash } from 'node:crypto';
import type { Database } from './database.ts';

/**
 * The notes of what a forgetting still has to do. Blocks of the ledger may quote a deleted text. SQLite
 * copies rows within its files, and leaves such copies in bytes that it does not use. No transaction spans
 * both files. So the transaction that deletes texts notes their quotes, and the notes stay until no block
 * and no file has the words. Every process that has the store open ends what a kill interrupted. Only
 * hashes are noted: the words are gone.
 */

/** Call it in the transaction that deletes texts. `quotes`: the lines by which blocks may quote them. */
export function noteForgetting(database: Database, quotes: Iterable<string> = []): void {
  const sql = 'INSERT INTO forgetting (quote) VALUES (?)';
  // No hash is empty: a text that no block quotes was somewhere in a file too.
  database.run(sql, '');
  for (const quote of quotes) database.run(sql, hashOf(quote));
}

export interface Forgetting {
  /** The number of the last note. */
  readonly last: number;
  has(quote: string): boolean;
}

/** Undefined where nothing is noted. */
export function forgettingIn(database: Database): Forgetting | undefined {
  const rows = database.all<{ readonly n: number; readonly quote: string }>(
    'SELECT n, quote FROM forgetting ORDER BY n',
  );
  const last = rows.at(-1)?.n;
  if (last === undefined) return undefined;
  const hashes = new Set(rows.map(({ quote }) => quote));
  return { last, has: (quote) => hashes.has(hashOf(quote)) };
}

/** To be called once neither a block nor a file has the words of the notes up to this one. */
export function endForgetting(database: Database, last: number): void {
  database.run('DELETE FROM forgetting WHERE n <= ?', last);
}

/** Changes with each part of a forgetting; empty where none is to be ended. */
export function unended(database: Database): string {
  const row = database.get<{ readonly note: number | null; readonly record: number | null }>(
    'SELECT (SELECT max(n) FROM forgetting) AS note, (SELECT min(record) FROM to_forget) AS record',
  );
  return [row?.note ?? [], row?.record ?? []].flat().join(' ');
}

/** 16 bytes of SHA-256: a forget of 50,000 memories has some 500,000 quotes. */
function hashOf(quote: string): string {
  return createHash('sha256').update(quote).digest('base64url').slice(0, 22);
}
