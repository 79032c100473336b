import type { Database } from './database.ts';

/**
 * Records which parts of a forgetting are not done yet. After a text is deleted from `memory.db`, blocks in `state.db`
 * may still quote it, and both files may have copies of deleted rows in unused bytes. No transaction covers both files.
 * So the transaction that deletes texts also writes notes with their references, which are hashes. Notes stay until no
 * block and no file has the texts. If a kill interrupts a forgetting, any process with an open store finishes it.
 */

/**
 * Writes notes; call it in the transaction that deletes texts. `refs`: the references of the texts that blocks quote.
 */
export function noteForgetting(database: Database, refs: readonly string[] = []): void {
  const sql = 'INSERT INTO forgetting (ref) VALUES (?)';
  // The note with an empty reference, which no record has, asks to erase the files even if `refs` is empty.
  for (const ref of ['', ...refs]) database.run(sql, ref);
}

export interface Forgetting {
  /** The number of the last note. */
  readonly last: number;
  has(ref: string): boolean;
}

/** Reads the notes; undefined if there are none. */
export function forgettingIn(database: Database): Forgetting | undefined {
  const rows = database.all<{ readonly n: number; readonly ref: string }>(
    'SELECT n, ref FROM forgetting ORDER BY n',
  );
  const last = rows.at(-1)?.n;
  if (last === undefined) return undefined;
  const refs = new Set(rows.map(({ ref }) => ref));
  return { last, has: (ref) => refs.has(ref) };
}

/** Deletes the notes up to the number `last`. Call it when no block and no file has their texts any more. */
export function endForgetting(database: Database, last: number): void {
  database.run('DELETE FROM forgetting WHERE n <= ?', last);
}

/**
 * Returns a text that identifies how far an unfinished deletion is; '' if there is none. Two equal texts mean that no
 * process has continued the deletion in between.
 */
export function unended(database: Database): string {
  const row = database.get<{ readonly note: number | null; readonly record: number | null }>(
    'SELECT (SELECT max(n) FROM forgetting) AS note, (SELECT min(record) FROM to_forget) AS record',
  );
  return [row?.note ?? [], row?.record ?? []].flat().join(' ');
}
