import type { RequestKind } from '../conversation/view.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import type { Outcome } from '../plan/continuity.ts';

/**
 * The rule for when old texts leave a conversation: rent or buy. Each request that still carries them
 * pays rent, the price of reading them from the provider's cache. Leaving them out costs once: the
 * provider writes the rest of the messages to its cache again. When the rent so far has reached that
 * cost, everything that is old leaves at once. So svc pays at most about twice the price of the best
 * decision, which would have to know how long the conversation continues.
 *
 * Outputs leave in batches and stay out. A window that slides by one output a request breaks the
 * cache each time: on real sessions it costs 137 to 163 % of doing nothing.
 */

/** Tokens are svc's estimates; prices are in units of one input token. */
export interface BatchFacts {
  /** A provider binds its thinking to what precedes it, so nothing in front of it may change. */
  readonly isBound: boolean;
  /** The provider's prompt cache has forgotten the conversation, so all of it is written again anyway. */
  readonly isCacheCold: boolean;
  /** Tokens of the whole request, and the number up to which nothing leaves. */
  readonly wholeTokens: number;
  readonly inputBudget: number;
  /** The provider's tokens that this request may have; undefined where the window is not known. */
  readonly room: number | undefined;
  /** Tokens of the messages as they would be sent without a new batch. */
  readonly messages: number;
  /** Tokens by which each later request would be shorter. */
  readonly gain: number;
  /** Those tokens, times the requests that carried them since they were old enough to leave. */
  readonly carried: number;
  readonly prices: CachePrices;
}

export type Decision = 'leaves' | 'protected' | 'within_budget' | 'near_window' | 'not_worth_it';

// Below it a batch saves less than its stubs and the look-ups of later requests are worth.
const GAIN_MIN = 1_024;
// Above it the client compacts before a batch has paid for itself.
const ROOM_SHARE_MAX = 0.8;

/** Whether the texts that are old enough leave now. */
export function decide(facts: BatchFacts): Decision {
  const { gain, messages, prices, room = Infinity } = facts;
  if (facts.wholeTokens <= facts.inputBudget) return 'within_budget';
  if (messages * prices.tokenRatio > ROOM_SHARE_MAX * room) return 'near_window';
  if (gain < GAIN_MIN || !pays(facts)) return 'not_worth_it';
  return facts.isBound ? 'protected' : 'leaves';
}

function pays({ isCacheCold, gain, messages, carried, prices }: BatchFacts): boolean {
  if (isCacheCold) return true;
  // An unknown price of a cache read may be a hundredth: then a batch never pays.
  if (!prices.isKnown) return false;
  const rent = prices.read * carried;
  const cost = (prices.write - prices.read) * Math.max(0, messages - gain);
  return rent >= cost;
}

/** What is known of a request before svc reads its old texts. */
export interface SightFacts {
  /** Why nothing may leave this request, whatever it says; undefined where something may. */
  readonly obstacle: Outcome | undefined;
  readonly kind: RequestKind;
  readonly isOverBudget: boolean;
  /** Something left this conversation before: it stays out. */
  readonly hasBatches: boolean;
  /** The ledger answered. Otherwise it is not known whether something left before. */
  readonly isLedgerRead: boolean;
  /** The mode shortens; in shadow svc only measures. */
  readonly isReal: boolean;
  /** The provider refused a shortened request of this conversation within the last hour. */
  readonly isRefused: boolean;
  /**
   * The memory may hold the old outputs: an earlier request was looked at, or left something out, or the cache is
   * cold, where asking pays because another process may have stored them. Bound conversations are only measured.
   */
  readonly isKnown: boolean;
  /** No exchange and no round is old enough to leave. */
  readonly isShort: boolean;
}

/** Whether svc reads the old texts of a request; otherwise the outcome to report. */
export function decideReading(facts: SightFacts): Outcome | 'reads' {
  const { obstacle, kind, hasBatches, isReal } = facts;
  if (obstacle !== undefined) return obstacle;
  const mayLeave = facts.isOverBudget && kind === 'main';
  if (!mayLeave && !hasBatches) {
    if (kind === 'main') return 'within_budget';
    return kind === 'compaction' ? 'compaction' : 'side_call';
  }
  if (isReal && facts.isRefused) return 'provider_refused';
  // To leave out anything else than before would break the prefix twice.
  if (!hasBatches && !facts.isLedgerRead) return 'unanswered';
  // At first sight nothing is stored: a long history need not be read before it is forwarded.
  if (isReal && !facts.isKnown) return facts.isShort ? 'nothing_old' : 'not_stored';
  return 'reads';
}
