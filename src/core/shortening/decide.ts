import type { CachePrices } from '../dialects/descriptor.ts';

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
