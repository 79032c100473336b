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
  /** Estimated tokens times the requests that have read them since they could have been left out. */
  readonly waited: number;
  /** Nothing was left out of this conversation before. */
  readonly isFirst: boolean;
  readonly prices: CachePrices;
}

// A conversation lasts the longer, the longer it has lasted: at nine in ten requests of 96 real sessions at
// least so many more follow. Short ones, which agents run by themselves, end after 8 to 25. With a quarter,
// fewer of those become dearer than direct. With more than a third, more sessions of any kind do.
const LASTS_ON = 1 / 3;
// Real conversations grow in leaps. One whose edge is further than this share of its expected
// length ends, or is compacted, before it gets there.
const EDGE_IS_NEAR = 0.5;
// The share of the cost of waiting that counts for a batch, as in renting and buying: having waited
// shows that the conversation lasts. Without it a batch that the horizon holds back never leaves, however
// long the conversation is. The first batch counts on less, since nothing has been saved yet: with a
// half, more sessions end before it has paid, and the price falls by 0.3 points at most.
const WAITED_SHARE_FIRST = 0.25;
const WAITED_SHARE_LATER = 0.5;

/**
 * The savings of a batch less its costs. The batch makes the provider write the remaining messages
 * once more instead of reading them; then every later request reads less.
 *
 * A conversation is expected to continue for a third of its length so far, and for `requestsAhead`
 * at most. A batch right at the beginning would leave out texts that the model is about to work with.
 * If the conversation is expected to reach the window's edge, everything is written again there. A
 * batch also counts on a share of the cost of having waited for it.
 */
export function batchProfit(batch: BatchPrice): number {
  const { gain, messages, requests, prices, isFirst } = batch;
  const lastsOn = Math.min(LASTS_ON * requests, prices.requestsAhead);
  const untilEdge = requests * batch.growthLeft;
  const requestsSaved = Math.max(0, Math.min(lastsOn, untilEdge));
  const waitedShare = isFirst ? WAITED_SHARE_FIRST : WAITED_SHARE_LATER;
  const saved = prices.read * (requestsSaved * gain + waitedShare * batch.waited);
  const rewritten =
    Math.max(0, messages - gain) + (untilEdge < EDGE_IS_NEAR * lastsOn ? batch.comingBack : 0);
  return saved - (prices.write - prices.read) * rewritten;
}
