import { estimateTextTokens } from '../../core/bytes/tokens.ts';
import type { RecalledPassage } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import type { Space, RecallSource } from './recall-source.ts';
import { decoded, type StoredText } from './driver.ts';
import { RULE_TERM } from '../../core/recall/rules.ts';
import { rulesInForce } from '../../core/recall/rules-in-force.ts';
import type { RuleMark } from '../../core/memory/record.ts';
import { textDigest } from '../../core/memory/reference.ts';
import { type Steps, together } from './steps.ts';

/** The marks with which a user controls what is recalled. A service has none. */
export interface RecallMarks {
  /** Returns the digests of memories in these spaces that are never recalled. */
  never(spaces: readonly Space[]): readonly string[];
  /**
   * Returns the memories in these spaces that are always recalled, newest first, as far as they fit ALWAYS_TOKENS_MAX.
   * Leaves out those with `excluded` digests.
   */
  always(spaces: readonly Space[], excluded: readonly string[]): RecalledPassage[];
  rules(spaces: readonly Pick<Space, 'id'>[]): RuleMarks;
}

/** Bound on the tokens of memories that are always recalled: about as many as rules get. */
const ALWAYS_TOKENS_MAX = 192;
/** Bound on memories that are always recalled. More would hardly fit into the tokens. */
const ALWAYS_READ_MAX = 32;
/** Estimated tokens of a line's dash and line end. The code that writes the block checks the exact number. */
const OVERHEAD_TOKENS = 2;

/** Estimates the tokens of a text as a line of a block. */
export function lineTokens(text: string): number {
  return estimateTextTokens(text) + OVERHEAD_TOKENS;
}

interface PinnedRow extends Omit<RecalledPassage, 'score' | 'text' | 'source'>, StoredText {
  readonly source: 'unverified' | null;
}

export function marksOf(database: Database): RecallMarks {
  return {
    never: (spaces) => {
      const rows = database.all<{ digest: string }>(NEVER, idsOf(spaces));
      return rows.map(({ digest }) => digest);
    },
    rules: (spaces) => {
      const rows = database.all<{ rule: string; mark: RuleMark }>(RULE_MARKS, idsOf(spaces));
      return new Map(rows.map(({ rule, mark }) => [rule, mark]));
    },
    always: (spaces, excluded) => {
      const without = new Set(excluded);
      let tokens = 0;
      return database
        .all<PinnedRow>(ALWAYS, idsOf(spaces))
        .filter(({ digest }) => !without.has(digest))
        .map(passageOf)
        .filter(({ text }) => {
          const more = lineTokens(text);
          if (tokens + more > ALWAYS_TOKENS_MAX) return false;
          tokens += more;
          return true;
        });
    },
  };
}

function passageOf({ source, ...row }: PinnedRow): RecalledPassage {
  return { ...decoded(row), score: 1, ...(source === null ? {} : { source }) };
}

function idsOf(spaces: readonly Pick<Space, 'id'>[]): string {
  return JSON.stringify(spaces.map(({ id }) => id));
}

// CROSS JOIN makes SQLite join in this order. Without statistics it would begin with all records of the space.
const NEVER = `SELECT r.digest FROM marks m CROSS JOIN records r ON r.id = m.record
  WHERE m.pin = 'never' AND r.space IN (SELECT value FROM json_each(?))`;

const RULE_MARKS =
  'SELECT rule, mark FROM rule_marks WHERE space IN (SELECT value FROM json_each(?))';

const ALWAYS = `SELECT r.ref, r.digest, s.name AS space, r.role, r.text, r.is_utf16, r.at, r.client, r.source
  FROM marks m CROSS JOIN records r ON r.id = m.record JOIN spaces s ON s.id = r.space
  WHERE m.pin = 'always' AND r.space IN (SELECT value FROM json_each(?))
  ORDER BY r.at DESC LIMIT ${ALWAYS_READ_MAX}`;

/** Bound on the user's texts with rules that are read, newest first, in each space. Reading one takes 30 us. */
const READ_MAX = 128;

/** The user's marks of rules, by `ruleDigest`. */
export type RuleMarks = ReadonlyMap<string, RuleMark>;
export const NO_MARKS: RuleMarks = new Map();

/** SQL that merges a new mark of a rule with its present one: 'retired' wins, and else the present one stays. */
export const STRONGER_RULE_MARK = `ON CONFLICT (space, rule)
  DO UPDATE SET mark = excluded.mark, at = excluded.at WHERE excluded.mark = 'retired'`;

/** Returns the digest that identifies a rule within its space. Equal sentences are one rule. */
export function ruleDigest(sentence: string): string {
  return textDigest('user', sentence);
}

/** Returns the user's rules in force in these spaces, without those of texts with `excluded` digests. */
export function* readRules(
  source: RecallSource,
  spaces: readonly Space[],
  excluded: readonly string[],
): Steps<RecalledPassage[]> {
  const found = yield* together(spaces.map((space) => source.saidWith(space, RULE_TERM, READ_MAX)));
  const without = new Set(excluded);
  const said = found.flat().filter(({ digest }) => !without.has(digest));
  return rulesInForce(said).map((rule) => ({ ...rule, score: 0 }));
}
