import type { RequestKind } from '../conversation/view.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import type { Outcome } from '../plan/continuity.ts';

/**
 * Decides when old texts are left out of a conversation, by the rule of renting or buying. Each request that has them
 * pays rent: the price of reading them from the provider's cache. Leaving them out costs once: the provider must write
 * the rest of the messages to its cache again. When the rent so far equals that cost, all old texts are left out at
 * once. So svc pays at most about twice the price of the best decision, which would have to know how long the
 * conversation lasts.
 * Outputs are left out in batches and stay out. Leaving out one output per request would break the cache each time: on
 * real sessions that costs 137 to 163 % of the price without svc.
 */

/** The facts that decide about a batch. Tokens are svc's estimates; prices are in units of one input token. */
export interface BatchFacts {
  /** True if the provider binds thinking to its prefix, so that nothing before it may change. */
  readonly isBound: boolean;
  /** True if the provider's cache has expired, so that everything is written again anyway. */
  readonly isCacheCold: boolean;
  /** Tokens of the whole request. */
  readonly wholeTokens: number;
  /** If the request has no more tokens than this, nothing is left out. */
  readonly inputBudget: number;
  /** The tokens that the model's window has for this request, as the provider counts them; undefined if unknown. */
  readonly room: number | undefined;
  /** Tokens of the messages if no new batch is made. */
  readonly messages: number;
  /** Tokens that a new batch saves in each later request. */
  readonly gain: number;
  /** Tokens that were old enough to leave out but were sent, summed over the requests so far. */
  readonly carried: number;
  readonly prices: CachePrices;
}

export type Decision = 'leaves' | 'protected' | 'within_budget' | 'near_window' | 'not_worth_it';

// Fewest tokens of a batch: a smaller one saves less than its stubs and later look-ups cost.
const GAIN_MIN = 1_024;
// Share of the window above which no batch is made: the client would compact before the batch has paid for itself.
const ROOM_SHARE_MAX = 0.8;

/** Decides whether all texts that are old enough are left out now. */
export function decide(facts: BatchFacts): Decision {
  const { gain, messages, prices, room = Infinity } = facts;
  if (facts.wholeTokens <= facts.inputBudget) return 'within_budget';
  if (messages * prices.tokenRatio > ROOM_SHARE_MAX * room) return 'near_window';
  if (gain < GAIN_MIN || !pays(facts)) return 'not_worth_it';
  return facts.isBound ? 'protected' : 'leaves';
}

/** Says whether the rent so far has reached the cost of leaving the texts out. With a cold cache that costs nothing. */
function pays({ isCacheCold, gain, messages, carried, prices }: BatchFacts): boolean {
  if (isCacheCold) return true;
  // An unknown price of a cache read may be as low as a hundredth of the full price. A batch would then hardly ever
  // pay, so none is made.
  if (!prices.isKnown) return false;
  const rent = prices.read * carried;
  const cost = (prices.write - prices.read) * Math.max(0, messages - gain);
  return rent >= cost;
}

/** What svc knows about a request before it reads the request's old texts. */
export interface SightFacts {
  /** Why nothing may be left out of this request; undefined if something may. */
  readonly obstacle: Outcome | undefined;
  readonly kind: RequestKind;
  readonly isOverBudget: boolean;
  /** True if earlier batches were left out of this conversation; they stay out. */
  readonly hasBatches: boolean;
  /** True if the ledger answered. Otherwise it is unknown whether earlier batches exist. */
  readonly isLedgerRead: boolean;
  /** True if the mode shortens; in shadow mode svc only measures. */
  readonly isReal: boolean;
  /** True if the provider refused a shortened request of this conversation within the last hour. */
  readonly isRefused: boolean;
  /**
   * True if reading the old texts can have a result. The memory may have them, because svc has read an earlier request
   * or left something out. If the cache is cold, another process may have stored them. If the conversation is bound,
   * svc only measures them.
   */
  readonly isKnown: boolean;
  /** True if no exchange and no round is old enough to be left out. */
  readonly isShort: boolean;
}

/** Returns 'reads' if svc reads the old texts of a request, and otherwise the outcome to report. */
export function decideReading(facts: SightFacts): Outcome | 'reads' {
  const { obstacle, kind, hasBatches, isReal } = facts;
  if (obstacle !== undefined) return obstacle;
  const mayLeave = facts.isOverBudget && kind === 'main';
  if (!mayLeave && !hasBatches) {
    if (kind === 'main') return 'within_budget';
    return kind === 'compaction' ? 'compaction' : 'side_call';
  }
  if (isReal && facts.isRefused) return 'provider_refused';
  // Without the ledger svc does not know which texts it left out before. Leaving out others would change the prefix.
  if (!hasBatches && !facts.isLedgerRead) return 'unanswered';
  // At a conversation's first request the memory most likely has none of its texts, so do not read a long history.
  if (isReal && !facts.isKnown) return facts.isShort ? 'nothing_old' : 'not_stored';
  return 'reads';
}
