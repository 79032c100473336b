import { STANDING_TERMS, standingIn, standingNow } from '../../core/recall/standing.ts';
import type { RecalledPassage } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { rangeOf, type Space } from './postings.ts';
import { type StoredText, textOf } from './text.ts';

/** Passages of the person's that are read, the newest of those that hold the words. */
const READ_MAX = 48;

interface Row extends Omit<RecalledPassage, 'score' | 'text'>, StoredText {
  readonly start: number;
  readonly end: number;
}

// CROSS JOIN keeps the order: the index first, from the newest passage on.
const STANDING = `SELECT r.ref, r.digest, s.name AS space, r.role, r.text, r.is_utf16, r.at, r.client,
    p.start, p.end
  FROM (SELECT rowid FROM passage_terms WHERE passage_terms MATCH ? AND rowid BETWEEN ? AND ?
    ORDER BY rowid DESC LIMIT 512) f
  CROSS JOIN passages p ON p.id = f.rowid CROSS JOIN records r ON r.id = p.record AND r.role = 'user'
    AND r.source IS NULL
  JOIN spaces s ON s.id = r.space LIMIT ${READ_MAX}`;

/** The person's standing instructions in these spaces, without those of the `excluded` digests. */
export function standingInstructions(
  database: Database,
  spaces: readonly Space[],
  excluded: readonly string[],
): RecalledPassage[] {
  const query = STANDING_TERMS.map((term) => `"${term}"`).join(' OR ');
  const rows = spaces.flatMap((space) => {
    const { first, last } = rangeOf(space);
    return database.all<Row>(STANDING, query, first, last);
  });
  const without = new Set(excluded);
  const said = rows
    .filter(({ digest }) => !without.has(digest))
    .flatMap(({ start, end, text, is_utf16, ...record }) =>
      standingIn(textOf({ text, is_utf16 }).slice(start, end)).map((sentence) => ({
        ...record,
        text: sentence,
        score: 0,
      })),
    );
  return standingNow(said);
}
