import { asList, parseJson } from '../../core/bytes/json-fields.ts';
import {
  type ConcernedFile,
  FILES_MAX,
  type HeldProvenance,
  PATH_CHARS_MAX,
  type ProvenanceFilter,
  type ProvenanceNote,
} from '../../ports/provenance.ts';
import type { Database } from './database.ts';
import { RECORD_COLUMNS, type RecordRow, storedRecord } from './records.ts';

/**
 * Stores the folder, the commit and the files that an exchange is about, in a row of one of its records. The row is
 * deleted with this record. A new note for a record replaces the earlier one.
 */

const LIST_MAX = 1000;
const ROOT_CHARS_MAX = 4096;
/** Matches a commit, SHA-1 or SHA-256 in hex, or ''. */
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})?$/;

/** Stores notes. Returns how many of them belong to a stored record. */
export function keepProvenance(database: Database, notes: readonly ProvenanceNote[]): number {
  let kept = 0;
  // A power cut may lose a note. Then nothing is known about the files of this exchange.
  database.unsyncedTransaction(() => {
    for (const note of notes) kept += keepOne(database, note);
  });
  return kept;
}

/** Returns the provenance of records, in the order of their ids; see ProvenanceFilter. */
export function listProvenance(database: Database, filter: ProvenanceFilter): HeldProvenance[] {
  const { space = null, refs, after = 0 } = filter;
  const limit = Math.max(0, Math.min(filter.limit, LIST_MAX));
  const rows =
    refs === undefined
      ? database.all<ListedRow>(PAGE, after, space, space, limit)
      : database.all<ListedRow>(OF_REFERENCES, JSON.stringify(refs), limit);
  return rows.map(({ place, root, head, files, ...row }) => ({
    place,
    root,
    commit: head,
    files: filesFrom(files),
    record: storedRecord(row),
  }));
}

export function filesFrom(json: string): ConcernedFile[] {
  return asList(parseJson(json)).flatMap((value) => {
    const [path, hash, size, modifiedMs, inode] = asList(value);
    const isFile =
      typeof path === 'string' &&
      typeof hash === 'string' &&
      typeof size === 'number' &&
      typeof modifiedMs === 'number' &&
      typeof inode === 'number';
    return isFile ? [{ path, hash, size, modifiedMs, inode }] : [];
  });
}

function keepOne(database: Database, { space, digests, root, commit, files }: ProvenanceNote) {
  const isUsable = root.length <= ROOT_CHARS_MAX && COMMIT.test(commit);
  const held = isUsable
    ? database.get<{ id: number }>(HELD, space, JSON.stringify(digests))
    : undefined;
  if (held === undefined) return 0;
  const rows = files
    .filter(({ path }) => path.length <= PATH_CHARS_MAX)
    .slice(0, FILES_MAX)
    .map(({ path, hash, size, modifiedMs, inode }) => [path, hash, size, modifiedMs, inode]);
  return database.run(KEEP, held.id, root, commit, JSON.stringify(rows));
}

interface ListedRow extends RecordRow {
  readonly place: number;
  readonly root: string;
  readonly head: string;
  readonly files: string;
}

const HELD = `SELECT r.id FROM json_each(?2) e JOIN spaces s ON s.name = ?1
  CROSS JOIN records r ON r.space = s.id AND r.digest = e.value ORDER BY e.key LIMIT 1`;

const KEEP = 'INSERT OR REPLACE INTO provenance (record, root, head, files) VALUES (?, ?, ?, ?)';

const LISTED = `SELECT v.record AS place, v.root, v.head, v.files, ${RECORD_COLUMNS}
  FROM provenance v JOIN records r ON r.id = v.record JOIN spaces s ON s.id = r.space`;

const PAGE = `${LISTED} WHERE v.record > ? AND (? IS NULL OR s.name = ?) ORDER BY v.record LIMIT ?`;

/** Selects the provenance of the records' exchanges: it is stored with one record of an exchange and applies to all. */
const OF_REFERENCES = `${LISTED} WHERE v.record IN (SELECT o.id FROM json_each(?) e
    JOIN records n ON n.ref = e.value
    JOIN records o ON o.space = n.space AND o.conversation = n.conversation AND o.exchange = n.exchange)
  ORDER BY v.record LIMIT ?`;
