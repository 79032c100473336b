import type { Dialect } from '../conversation/dialect.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import { dialectOf } from '../dialects/dialects.ts';
import { CACHE_DEFAULT_MS } from '../conversation/cache-marks.ts';

/** `cacheMs`: how long the request's cache lives. Anthropic asks twice the price for an hour. */
export function cachePrices(dialect: Dialect, cacheMs = CACHE_DEFAULT_MS): CachePrices {
  const { cachePrices: usual, longCachePrices } = dialectOf(dialect);
  return (cacheMs > CACHE_DEFAULT_MS ? longCachePrices : undefined) ?? usual;
}

export interface BatchPrice {
  /** Estimated tokens that the batch takes out of every request from now on. */
  readonly gain: number;
  /** Estimated tokens of the messages as they would be sent without it. */
  readonly messages: number;
  /** Requests of this conversation so far. */
  readonly requests: number;
  /** As Fill says. */
  readonly growthLeft: number;
  /** Estimated tokens that are written again at the window's edge because of this batch alone. */
  readonly comingBack: number;
  /**
   * Estimated tokens times the requests that have read them since they could have been left out; 0 for
   * a conversation's first batch.
   */
  readonly waited: number;
  readonly prices: CachePrices;
}

// The rounds in which a conversation gets going say nothing of how long it will last.
const REQUESTS_TO_START = 4;
// At any request of 96 real sessions, three in four last as long again as they have lasted, or for
// `requestsAhead` more. From 0.65 to 0.9 the measured cost is the same.
const LASTS_ON = 0.75;
// Real conversations grow in leaps. One whose edge is further than this share of its expected
// length ends, or is compacted, before it gets there.
const EDGE_IS_NEAR = 0.5;
// The share of the cost of waiting that counts for a batch, as in renting and buying: having waited
// shows that the conversation lasts. From a quarter to a half, 96 real sessions cost the same;
// above that, more of the left-out text is needed again.
const WAITED_SHARE = 0.25;

/**
 * The savings of a batch less its costs. The batch makes the provider write the remaining messages
 * once more instead of reading them; then every later request reads less.
 *
 * A conversation is expected to continue for three quarters of its length so far, and for
 * `requestsAhead` at most. A batch right at the beginning would leave out texts that the model is
 * about to work with. If the conversation is expected to reach the window's edge, everything is
 * written again there. Later batches also count on a share of the cost of having waited for them.
 */
export function batchProfit(batch: BatchPrice): number {
  const { gain, messages, requests, prices, waited } = batch;
  const lastsOn = Math.min(LASTS_ON * (requests - REQUESTS_TO_START), prices.requestsAhead);
  const untilEdge = requests * batch.growthLeft;
  const requestsSaved = Math.max(0, Math.min(lastsOn, untilEdge));
  const saved = prices.read * (requestsSaved * gain + WAITED_SHARE * waited);
  const rewritten =
    Math.max(0, messages - gain) + (untilEdge < EDGE_IS_NEAR * lastsOn ? batch.comingBack : 0);
  return saved - (prices.write - prices.read) * rewritten;
}
