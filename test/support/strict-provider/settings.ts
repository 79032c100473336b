/**
 * What the stand-in is told about the account and about everything that the providers' documents leave
 * open. A reading has a name, so that a test can run under each of them.
 */

export interface StrictSettings {
  /**
   * Accounts of Anthropic from 2026-08-31 on are `new`: a failed prefix check is an error. On older ones
   * the block still reaches the model of that time.
   */
  readonly account: 'new' | 'old';
  readonly readings: Readings;
  /** Milliseconds, for the lifetime of cache entries. */
  readonly now: () => number;
}

export interface Readings {
  /**
   * The reference calls a string and one text block equivalent messages (@anthropic-ai/sdk 0.129.0, read 2026-11-30). No
   * document says so of the check of a prefix, but Claude Code changes between the two.
   */
  readonly stringIsOneBlock: boolean;
  /** The page of 2026-09-26 says "the set of tools". */
  readonly toolOrderCounts: boolean;
  /** The page of 2026-09-26 exempts Mythos 5.1; those of November name it among the checked models. */
  readonly mythos51IsChecked: boolean;
  /** Whether thinking of a model without the check is checked by a model that has it: no document says so. */
  readonly olderBlocksAreBound: boolean;
  /** "It usually ends with a sentence naming what changed" (preserved-thinking, 2026-09-26). */
  readonly errorNamesChange: boolean;
  /** The page on system messages excludes Sonnet 5; a public measurement of 2026-09-24 got a 200. */
  readonly sonnet5TakesSystem: boolean;
  /** "Newer frontier models" drop reasoning: the first one is not named. */
  readonly reasoningBoundFrom: Version;
  /** One text lists `reasoning.effort` among the changes of the prefix; the newer one advises only. */
  readonly effortCounts: boolean;
  /** Whether an earlier reasoning item is a part of the prefix. */
  readonly earlierReasoningCounts: boolean;
}

export type Version = readonly [major: number, minor: number];

/** The stricter reading, except where real clients would break it by themselves. */
export const READINGS: Readings = {
  stringIsOneBlock: true,
  toolOrderCounts: true,
  mythos51IsChecked: true,
  olderBlocksAreBound: false,
  errorNamesChange: true,
  sonnet5TakesSystem: true,
  reasoningBoundFrom: [5, 6],
  effortCounts: false,
  earlierReasoningCounts: false,
};

export function strictSettings(
  changes: Partial<Omit<StrictSettings, 'readings'>> & {
    readonly readings?: Partial<Readings>;
  } = {},
): StrictSettings {
  return {
    account: 'new',
    now: () => Date.now(),
    ...changes,
    readings: { ...READINGS, ...changes.readings },
  };
}

export function isAtLeast([major, minor]: Version, floor: Version): boolean {
  return major > floor[0] || (major === floor[0] && minor >= floor[1]);
}
