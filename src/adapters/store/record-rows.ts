import type { MemoryRecord, SpeakerRole } from '../../core/memory/record.ts';
import type { Database } from './database.ts';
import type { AddText, IndexedPassage } from './passage-index.ts';
import { bytesOf } from './text.ts';

/** The rows of spoken texts: the embedded store and the memory service keep them in the same tables. */

export interface NewRow extends Omit<
  MemoryRecord<SpeakerRole>,
  'space' | 'isTimed' | 'isImported' | 'pin'
> {
  readonly ref: string;
  readonly passages: readonly IndexedPassage[];
  /** The key under which the index finds the neighbours of the text. */
  readonly thread: string;
}

export interface RowPlace {
  readonly space: number;
  readonly add: AddText;
}

/** Writes a text and puts it into the index. Returns the number of its row. */
export function addRecord(database: Database, row: NewRow, { space, add }: RowPlace): number {
  const { text, is_utf16: isUtf16 } = bytesOf(row.text);
  const made = database.get<{ id: number }>(
    `INSERT INTO records
      (space, digest, ref, role, text, is_utf16, conversation, client, at, fingerprint, exchange, branch,
       source)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
    space,
    row.digest,
    row.ref,
    row.role,
    text,
    isUtf16,
    row.conversation,
    row.client,
    row.at,
    row.fingerprint,
    row.exchange,
    row.branch ?? null,
    row.source ?? null,
  );
  const record = made?.id ?? 0;
  add({ ...row, conversation: row.thread }, { space, record });
  return record;
}

export interface SaidAgain extends Pick<MemoryRecord, 'digest' | 'at'> {
  readonly isTimed?: true | undefined;
  readonly source?: MemoryRecord['source'] | undefined;
}

/**
 * A fact that is stated again after its opposite becomes the newest one. Words that are verified this
 * time lose the mark `source`.
 */
export function sayAgain(
  database: Database,
  space: number,
  { digest, at, isTimed, source }: SaidAgain,
): void {
  if (isTimed === true) {
    const sql = 'UPDATE records SET at = ? WHERE space = ? AND digest = ? AND at < ?';
    database.run(sql, at, space, digest, at);
  }
  if (source === undefined) {
    const sql =
      'UPDATE records SET source = NULL WHERE space = ? AND digest = ? AND source IS NOT NULL';
    database.run(sql, space, digest);
  }
}
