import { createHash } from 'node:crypto';
import type { Modes } from '../http/modes.ts';

/**
 * The hold-out: of conversations one in ten gets no memory and no shortening, so that both groups can be
 * compared. A hash of the conversation chooses, so the choice stays the same in every request of it.
 */
export type Trial = 'with' | 'without';

const ONE_IN = 10;

/** `conversation`: its key; agents that a session started belong to its group. */
export function trialOf(conversation: string): Trial {
  const [session = ''] = conversation.split('/', 1);
  const hash = createHash('sha256').update(`hold-out ${session}`).digest();
  return hash.readUInt32BE(0) % ONE_IN === 0 ? 'without' : 'with';
}

/** Lowers the mode of a held-out conversation to `write`: its texts may be useful in other conversations. */
export function modesWithout(modes: Modes): Modes {
  const memory = modes.writes ? 'write' : 'off';
  return { memory, reads: false, writes: modes.writes, compression: 'passthrough' };
}

/** How people begin when they correct an agent. A hint, the same for both groups. */
const CORRECTION =
  /^\W*(?:no\b|nope\b|wrong\b|undo\b|revert\b|stop\b|not (?:what|like) |that(?:'|’)?s (?:not|wrong)|that is (?:not|wrong)|you (?:forgot|missed)|i (?:said|told you)|nein\b|falsch\b)/i;

export function isCorrection(text: string): boolean {
  return CORRECTION.test(text.slice(0, 80));
}

/** Sums over one conversation. */
export interface TrialConversation {
  readonly trial: Trial;
  readonly requests: number;
  /** Input and output tokens as the provider counted them. */
  readonly tokens: number;
  readonly corrections: number;
  /** In input tokens at full price. */
  readonly paid: number;
}

export const TRIAL_MEASURES = ['requests', 'tokens', 'corrections', 'paid'] as const;
export type TrialMeasure = (typeof TRIAL_MEASURES)[number];

export interface TrialResult {
  readonly measure: TrialMeasure;
  /** Means of a conversation. */
  readonly with: number;
  readonly without: number;
  /** Of with against without: -0.2 is a fifth less. Undefined as long as there are too few to tell. */
  readonly change?: { readonly low: number; readonly high: number };
}

export interface TrialReport {
  readonly conversations: Readonly<Record<Trial, number>>;
  readonly results: readonly TrialResult[];
}

/** The smallest group for an interval, because the sums of conversations differ by a factor of a hundred. */
const CONVERSATIONS_MIN = 30;
/** 95 % of a normal distribution; with 30 and more of each the difference is near one. */
const NORMAL_95 = 1.96;

export function reportTrial(all: readonly TrialConversation[]): TrialReport {
  const groups = { with: of(all, 'with'), without: of(all, 'without') };
  const results = TRIAL_MEASURES.map((measure) => {
    const [one, other] = [moments(groups.with, measure), moments(groups.without, measure)];
    const result = { measure, with: one.mean, without: other.mean };
    const isEnough = Math.min(one.count, other.count) >= CONVERSATIONS_MIN && other.mean > 0;
    if (!isEnough) return result;
    const half = NORMAL_95 * Math.sqrt(one.variance / one.count + other.variance / other.count);
    const difference = one.mean - other.mean;
    const change = {
      low: (difference - half) / other.mean,
      high: (difference + half) / other.mean,
    };
    // If the interval contains zero, neither group is better.
    return change.low <= 0 && change.high >= 0 ? result : { ...result, change };
  });
  return {
    conversations: { with: groups.with.length, without: groups.without.length },
    results,
  };
}

function of(all: readonly TrialConversation[], trial: Trial): readonly TrialConversation[] {
  return all.filter((one) => one.trial === trial);
}

function moments(
  group: readonly TrialConversation[],
  measure: TrialMeasure,
): { readonly count: number; readonly mean: number; readonly variance: number } {
  const count = group.length;
  if (count === 0) return { count, mean: 0, variance: 0 };
  const mean = group.reduce((sum, one) => sum + one[measure], 0) / count;
  const squares = group.reduce((sum, one) => sum + (one[measure] - mean) ** 2, 0);
  return { count, mean, variance: count < 2 ? 0 : squares / (count - 1) };
}
