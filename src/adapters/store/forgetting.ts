import type { Database } from './database.ts';

/**
 * The notes of what a forgetting still has to do. Blocks of the ledger may quote a deleted text. SQLite
 * copies rows within its files, and leaves such copies in bytes that it does not use. No transaction spans
 * both files. So the transaction that deletes texts notes their references, and the notes stay until no block
 * and no file has the words. Every process that has the store open ends what a kill interrupted. References
 * are hashes: the words are gone.
 */

/** Call it in the transaction that deletes texts. `refs`: the references by which blocks may quote them. */
export function noteForgetting(database: Database, refs: readonly string[] = []): void {
  const sql = 'INSERT INTO forgetting (ref) VALUES (?)';
  // No reference is empty: a text that no block quotes was somewhere in a file too.
  for (const ref of ['', ...refs]) database.run(sql, ref);
}

export interface Forgetting {
  /** The number of the last note. */
  readonly last: number;
  has(ref: string): boolean;
}

/** Undefined where nothing is noted. */
export function forgettingIn(database: Database): Forgetting | undefined {
  const rows = database.all<{ readonly n: number; readonly ref: string }>(
    'SELECT n, ref FROM forgetting ORDER BY n',
  );
  const last = rows.at(-1)?.n;
  if (last === undefined) return undefined;
  const refs = new Set(rows.map(({ ref }) => ref));
  return { last, has: (ref) => refs.has(ref) };
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
