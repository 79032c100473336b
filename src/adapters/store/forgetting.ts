import type { Database } from './database.ts';

/**
 * Records what a forgetting still has to do. Blocks of the ledger may quote a deleted text, and SQLite leaves copies
 * of rows in unused bytes of its files. No transaction covers both files. So the transaction that deletes texts
 * writes notes with their references; they stay until no block and no file has the words. Every process with an open
 * store finishes work that a kill interrupted. References are hashes, so they contain no words.
 */

/** Writes the notes, in the transaction that deletes texts. `refs`: references by which blocks may quote them. */
export function noteForgetting(database: Database, refs: readonly string[] = []): void {
  const sql = 'INSERT INTO forgetting (ref) VALUES (?)';
  // The empty reference, which no record has, covers texts that no block quotes: they were in a file too.
  for (const ref of ['', ...refs]) database.run(sql, ref);
}

export interface Forgetting {
  /** The number of the last note that was read. */
  readonly last: number;
  has(ref: string): boolean;
}

/** Returns what the notes say; undefined if there are none. */
export function forgettingIn(database: Database): Forgetting | undefined {
  const rows = database.all<{ readonly n: number; readonly ref: string }>(
    'SELECT n, ref FROM forgetting ORDER BY n',
  );
  const last = rows.at(-1)?.n;
  if (last === undefined) return undefined;
  const refs = new Set(rows.map(({ ref }) => ref));
  return { last, has: (ref) => refs.has(ref) };
}

/** Deletes the notes up to this one, once neither a block nor a file has their words. */
export function endForgetting(database: Database, last: number): void {
  database.run('DELETE FROM forgetting WHERE n <= ?', last);
}

/** Returns a text that changes with each part of a forgetting; empty if there is nothing to finish. */
export function unended(database: Database): string {
  const row = database.get<{ readonly note: number | null; readonly record: number | null }>(
    'SELECT (SELECT max(n) FROM forgetting) AS note, (SELECT min(record) FROM to_forget) AS record',
  );
  return [row?.note ?? [], row?.record ?? []].flat().join(' ');
}
