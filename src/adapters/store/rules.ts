import { RULE_TERM } from '../../core/recall/rules.ts';
import { rulesInForce } from '../../core/recall/rules-in-force.ts';
import { textDigest } from '../../core/memory/reference.ts';
import type { RecalledPassage } from '../../ports/memory.ts';
import type { RecallSource, Space } from './recall-source.ts';
import { type Steps, together } from './steps.ts';

/**
 * Texts of a person's that state rules, the newest of a space. Each costs 30 us to read again, and no one keeps to
 * more rules than these hold.
 */
const READ_MAX = 128;

/** A retired rule is never placed. A pinned one is placed whatever the prompt is about. */
export type RuleMark = 'retired' | 'pinned';

/** The marks of a person on rules, by `ruleDigest`. */
export type RuleMarks = ReadonlyMap<string, RuleMark>;

/** Names a rule within its space: the same sentence is one rule, however often it was said. */
export function ruleDigest(sentence: string): string {
  return textDigest('user', sentence);
}

/** The person's rules in force in these spaces, without those of the `excluded` digests. */
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
