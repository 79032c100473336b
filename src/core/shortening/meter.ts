import type { Usage } from '../dialects/dialect-answer.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import type { ListPrice, LongPrice } from '../settings/model-facts.ts';

/**
 * Compares the price of a conversation, by the provider's own counts, with its estimated price without svc ("direct").
 * A price is in units of one input token at full price, and includes the surcharge of a long request and of its answer.
 * The estimate supposes that the provider's cache serves the direct requests as it served the real ones, and that no
 * batch breaks the cache.
 */

export interface MeteredRequest {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly originalTokens: number;
  readonly forwardedTokens: number;
  /** Tokens of all left-out texts. If the number differs from the last request's, a batch has changed the prefix. */
  readonly elidedTokens: number;
  readonly usage: Usage;
  readonly prices: CachePrices;
  /** Undefined if the model's list price is unknown. */
  readonly list: ListPrice | undefined;
  /** How long a cache entry lives after its last use, in milliseconds. */
  readonly cacheMs: number;
}

export interface Price {
  readonly paid: number;
  /** The price without svc, as the model of this file estimates it. */
  readonly direct: number;
}

export interface Metered {
  readonly price: Price;
  readonly state: MeterState;
}

/** The facts about a conversation's last request that the price of the next one depends on. */
export interface MeterState {
  readonly at: number;
  /** The input tokens of the last request, as the provider counted them. */
  readonly total: number;
  /** Estimated input tokens of the last request without svc. */
  readonly directTotal: number;
  readonly elidedTokens: number;
  /** True if the provider has served something from its cache. Some providers have no cache or do not report it. */
  readonly hasCache: boolean;
  readonly requests: number;
  /** The number of requests for which the provider's cache should have had the prefix and did not use it. */
  readonly missed: number;
}

/**
 * So many cache misses count as the provider's fault and not as svc's: two plus 4 % of the requests. In 1 % of real
 * requests the provider's cache should have had the prefix and did not use it.
 */
const MISSES_FREE = 2;
const MISS_SHARE_FREE = 0.04;
/**
 * Bound on the tokens that the provider writes again although it served the prefix, because cache entries end at marks:
 * this number, or this share of the last request if that is more.
 */
const REWRITTEN_TOKENS = 2_048;
const REWRITTEN_SHARE = 0.1;
/** A request shorter than this share of the last one shows that the client compacted or went back. */
const CUT_SHARE = 0.8;
/** Share of some 450 real requests after the cache's lifetime that the cache no longer served. */
const COLD_SHARE = 0.57;

/** Prices the next request of a conversation. `before`: undefined for the first one. */
export function meter(before: MeterState | undefined, request: MeteredRequest): Metered {
  const { usage, prices, list, originalTokens, forwardedTokens, elidedTokens, at } = request;
  const total = inputOf(usage);
  const directTotal = (total * originalTokens) / Math.max(1, forwardedTokens);
  const here: Here = { request, total, directTotal, paid: usualPrice(usage, prices) };
  const kind = before === undefined ? 'cold' : kindOf(before, here);
  const earlier = before ?? NOTHING_YET;
  const isFree = earlier.missed < MISSES_FREE + MISS_SHARE_FREE * earlier.requests;
  const direct = directPrice(kind === 'missed' && isFree ? 'cold' : kind, earlier, here);
  const state = {
    at,
    total,
    directTotal,
    elidedTokens,
    hasCache: earlier.hasCache || usage.cacheRead > 0,
    requests: earlier.requests + 1,
    missed: earlier.missed + (kind === 'missed' ? 1 : 0),
  };
  const price = {
    paid: withSurcharge(here.paid, total, usage, list),
    direct: withSurcharge(direct, directTotal, usage, list),
  };
  return { price, state };
}

/** Returns the price of a request by the tokens that the provider counted. */
export function paidFor(usage: Usage, prices: CachePrices, list: ListPrice | undefined): number {
  return withSurcharge(usualPrice(usage, prices), inputOf(usage), usage, list);
}

/** Returns the factor of the price of a request's input: more than 1 if the request is long for its model. */
export function longFactor(usage: Usage, list: ListPrice | undefined): number {
  return longPriceOf(inputOf(usage), list)?.input ?? 1;
}

/** Adds what a request with so many input tokens and this answer costs more, if it is long for its model. */
function withSurcharge(
  price: number,
  inputTokens: number,
  { output }: Usage,
  list: ListPrice | undefined,
): number {
  const long = longPriceOf(inputTokens, list);
  if (list === undefined || long === undefined) return price;
  return long.input * price + ((long.output - 1) * output * list.output) / list.input;
}

/** Returns the higher price if a request with so many input tokens is long for its model. */
function longPriceOf(inputTokens: number, list: ListPrice | undefined): LongPrice | undefined {
  return inputTokens > (list?.long?.above ?? Infinity) ? list?.long : undefined;
}

function inputOf({ input, cacheRead, cacheWrite }: Usage): number {
  return input + cacheRead + cacheWrite;
}

/** Returns the price of a request's input without surcharges. */
function usualPrice(
  { input, cacheRead, cacheWrite, cacheWriteHour = 0 }: Usage,
  prices: CachePrices,
): number {
  const usual = cacheWrite - cacheWriteHour;
  return input + prices.read * cacheRead + prices.write * usual + prices.writeHour * cacheWriteHour;
}

/**
 * How the provider's cache served a request. 'cold': it had no entry. 'served': it had the prefix. 'missed': it should
 * have had the prefix. 'batch': a batch changed the prefix. 'rested': a batch after the cache's lifetime, when an entry
 * may or may not have existed.
 */
type Kind = 'cold' | 'served' | 'missed' | 'batch' | 'rested';

interface Here {
  readonly request: MeteredRequest;
  readonly total: number;
  readonly directTotal: number;
  readonly paid: number;
}

const NOTHING_YET: MeterState = {
  at: 0,
  total: 0,
  directTotal: 0,
  elidedTokens: 0,
  hasCache: false,
  requests: 0,
  missed: 0,
};

function kindOf(before: MeterState, { request, total, directTotal }: Here): Kind {
  const hasCache = before.hasCache || request.usage.cacheRead > 0;
  if (!hasCache || directTotal < CUT_SHARE * before.directTotal) return 'cold';
  const isBatch = request.elidedTokens !== before.elidedTokens;
  if (request.at - before.at > request.cacheMs) return isBatch ? 'rested' : 'cold';
  if (isBatch) return 'batch';
  const rewritten = before.total - request.usage.cacheRead;
  const usual = Math.max(REWRITTEN_TOKENS, REWRITTEN_SHARE * before.total);
  return rewritten > usual && total > 0 ? 'missed' : 'served';
}

function directPrice(
  kind: Kind,
  before: MeterState,
  { request: { usage, prices }, total, directTotal, paid }: Here,
): number {
  // The price if the provider's cache served the same share of the direct request as of this one.
  const written = total === 0 ? 0 : (paid * directTotal) / total;
  if (kind === 'cold') return written;
  const fresh = usage.input + usage.cacheWrite;
  const freshPrice = fresh === 0 ? prices.write : (paid - prices.read * usage.cacheRead) / fresh;
  const added = Math.max(0, directTotal - before.directTotal);
  const news = Math.min(directTotal, kind === 'served' ? fresh : added);
  const read = prices.read * (directTotal - news) + freshPrice * news;
  return kind === 'rested' ? COLD_SHARE * written + (1 - COLD_SHARE) * read : read;
}
