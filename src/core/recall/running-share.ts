/**
 * When recall speaks to an agent: for a prompt that shares more with the memory than most prompts of
 * its project do. A fixed floor that fits one project lets twice as many needless blocks through in
 * another; a share keeps its rate in each.
 */

/** Prompts of a project that a new one is compared with. */
export const SIGNALS_MAX = 200;
/** A project with fewer prompts is young: its own share says little yet. */
const YOUNG = 20;
/**
 * The signal above which recall speaks in a young project: the share's signal in two projects after
 * their first 20 prompts, the higher of the two. Young memories are small: silence costs little.
 */
const YOUNG_SIGNAL_MIN = 4.5;

/**
 * `earlier`: signals of the project's last prompts with words of their own, in any order. With a
 * share of 0, recall speaks for every signal above 0.
 */
export function speaks(signal: number, earlier: readonly number[], share: number): boolean {
  if (signal <= 0) return false;
  if (share === 0) return true;
  if (earlier.length < YOUNG) return signal >= YOUNG_SIGNAL_MIN;
  return shareBelow(signal, earlier) >= share;
}

/** The share of earlier prompts that matched more weakly. */
export function shareBelow(signal: number, earlier: readonly number[]): number {
  const below = earlier.filter((one) => one < signal).length;
  return earlier.length === 0 ? 0 : below / earlier.length;
}
