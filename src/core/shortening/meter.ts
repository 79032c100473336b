import type { Usage } from '../dialects/answer.ts';
import type { CachePrices } from '../dialects/descriptor.ts';

/**
 * Compares what a conversation cost, by the provider's own counts, with what it would have cost
 * direct. Pure: the same requests give the same verdict. So a restarted svc reads them from the
 * request log and continues where the last process was.
 *
 * A price is in units of one input token at full price. Direct requests cannot be observed, so they
 * are modelled: the provider's cache works for them as it did here, and no batch breaks it.
 */

/** One request of a conversation as the request log has it. */
export interface MeteredRequest {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly originalTokens: number;
  readonly forwardedTokens: number;
  /** Tokens of all left-out texts; when the number changes, the prefix has changed too. */
  readonly elidedTokens: number;
  readonly usage: Usage;
  readonly prices: CachePrices;
  /** How long the provider's cache lives after its last use. */
  readonly cacheMs: number;
}

export interface Price {
  readonly paid: number;
  /** By the model. */
  readonly direct: number;
}

/**
 * `goes_on`: batches as they pay. `no_more`: no new batch; what is left out stays out, because to send
 * it again is dearer still. `send_all`: each request is dearer than direct, so all is sent again.
 */
export type Verdict = 'goes_on' | 'no_more' | 'send_all';

export interface Metered {
  readonly price: Price;
  readonly state: MeterState;
}

interface Batch {
  /** How much more than direct the request that made the batch cost. */
  readonly extra: number;
  /** Requests since. */
  readonly age: number;
}

export interface MeterState {
  readonly at: number;
  /** The provider's tokens of the last request, and of the same one had it gone direct. */
  readonly total: number;
  readonly directTotal: number;
  readonly elidedTokens: number;
  /**
   * The provider has served something from a cache. Some providers have none or do not report it.
   */
  readonly hasCache: boolean;
  /** Requests that the cache should have served, and those that it did not, before anything was left out. */
  readonly before: { readonly warm: number; readonly missed: number };
  /** The same from the first batch on; `requests` counts all. */
  readonly since: { readonly requests: number; readonly missed: number };
  readonly paid: number;
  readonly direct: number;
  /** Those that had not the requests yet that the price model counted on. */
  readonly batches: readonly Batch[];
  /** How much more than direct a request cost lately: negative when shortening pays. */
  readonly lossPerRequest: number;
  /** Requests in a row at which the conversation was too dear. */
  readonly dear: number;
  readonly verdict: Verdict;
}

/** Above this share of direct's price. Token estimates of what is left out are wrong by up to 8 %. */
const DEAR_RATIO = 1.1;
/** From the first batch on: more than a batch may take to pay itself back. */
const REQUESTS_MIN = 20;
const DEAR_IN_A_ROW = 5;
/**
 * 1 % of real requests miss a cache that should have served them, whatever is sent. Four times that,
 * and two more, are not held against shortening; nor is twice the share missed before the first batch.
 */
const MISSES_FREE = 2;
const MISS_SHARE_FREE = 0.04;
/** Clients rewrite their last message, and entries end at marks: so much is written again anyway. */
const REWRITTEN_TOKENS = 2_048;
const REWRITTEN_SHARE = 0.1;
/** A request that is shorter than this share of the last one: the client compacted, or went back. */
const CUT_SHARE = 0.8;
/**
 * Share of some 450 real requests sent after the cache's lifetime had passed that missed the cache.
 */
const COLD_SHARE = 0.57;
const RECENT_WEIGHT = 0.2;

/** Prices the next request of a conversation. `before` is undefined at its first. */
export function meter(before: MeterState | undefined, request: MeteredRequest): Metered {
  const { usage, prices, originalTokens, forwardedTokens, elidedTokens, at } = request;
  const total = usage.input + usage.cacheRead + usage.cacheWrite;
  const directTotal = (total * originalTokens) / Math.max(1, forwardedTokens);
  const here: Here = { request, total, directTotal, paid: paidFor(usage, prices) };
  const kind = before === undefined ? 'cold' : kindOf(before, here);
  const missed = kind === 'missed' ? 1 : 0;
  const earlier = before ?? NOTHING_YET;
  const isJudged = earlier.since.requests > 0 || elidedTokens > 0;
  const isFree = !isJudged || missed === 0 || earlier.since.missed < missesFree(earlier);
  const priced = kind === 'missed' && isFree ? 'cold' : kind;
  const direct = directPrice(priced, earlier, here);
  const price = { paid: here.paid, direct };
  const state = {
    ...earlier,
    at,
    total,
    directTotal,
    elidedTokens,
    hasCache: earlier.hasCache || usage.cacheRead > 0,
  };
  // A batch after a pause is not held against shortening: it was made because the cache is gone.
  const fair = kind === 'rested' ? { ...price, direct: directPrice('cold', earlier, here) } : price;
  if (isJudged)
    return { price, state: judged(state, { price: fair, kind, missed, prices, directTotal }) };
  const { warm, missed: misses } = earlier.before;
  const isWarm = kind !== 'cold' ? 1 : 0;
  return { price, state: { ...state, before: { warm: warm + isWarm, missed: misses + missed } } };
}

/** The price of a request's input at this provider. */
export function paidFor(
  { input, cacheRead, cacheWrite, cacheWriteHour = 0 }: Usage,
  prices: CachePrices,
): number {
  const usual = cacheWrite - cacheWriteHour;
  return input + prices.read * cacheRead + prices.write * usual + prices.writeHour * cacheWriteHour;
}

/** 'rested': a batch after a pause, when it is unknown whether the cache was still there. */
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
  before: { warm: 0, missed: 0 },
  since: { requests: 0, missed: 0 },
  paid: 0,
  direct: 0,
  batches: [],
  lossPerRequest: 0,
  dear: 0,
  verdict: 'goes_on',
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
  // A cache miss here would be a miss direct too; direct pays more in proportion to its length.
  const written = total === 0 ? 0 : (paid * directTotal) / total;
  if (kind === 'cold') return written;
  const fresh = usage.input + usage.cacheWrite;
  const freshPrice = fresh === 0 ? prices.write : (paid - prices.read * usage.cacheRead) / fresh;
  const added = Math.max(0, directTotal - before.directTotal);
  const news = Math.min(directTotal, kind === 'served' ? fresh : added);
  const read = prices.read * (directTotal - news) + freshPrice * news;
  return kind === 'rested' ? COLD_SHARE * written + (1 - COLD_SHARE) * read : read;
}

function missesFree({ before, since }: MeterState): number {
  const usual = before.warm === 0 ? 0 : before.missed / before.warm;
  return MISSES_FREE + since.requests * Math.max(MISS_SHARE_FREE, 2 * usual);
}

function judged(
  state: MeterState,
  now: {
    readonly price: Price;
    readonly kind: Kind;
    readonly missed: number;
    readonly prices: CachePrices;
    readonly directTotal: number;
  },
): MeterState {
  const { price, kind, missed, prices } = now;
  const paid = state.paid + price.paid;
  const direct = state.direct + price.direct;
  const loss = price.paid - price.direct;
  const aged = state.batches
    .map(({ extra, age }) => ({ extra, age: age + 1 }))
    .filter(({ age }) => age < prices.requestsAhead);
  const batches = kind === 'batch' && loss > 0 ? [...aged, { extra: loss, age: 0 }] : aged;
  // A batch is not held against its conversation before it had the requests to pay itself back.
  const open = batches.reduce(
    (sum, { extra, age }) => sum + extra * (1 - age / prices.requestsAhead),
    0,
  );
  const requests = state.since.requests + 1;
  const isDear = requests >= REQUESTS_MIN && paid - open > DEAR_RATIO * direct;
  const lossPerRequest =
    kind === 'batch' || kind === 'rested'
      ? state.lossPerRequest
      : (1 - RECENT_WEIGHT) * state.lossPerRequest + RECENT_WEIGHT * loss;
  const next = {
    ...state,
    since: { requests, missed: state.since.missed + missed },
    paid,
    direct,
    batches,
    lossPerRequest,
    dear: isDear ? state.dear + 1 : 0,
  };
  return { ...next, verdict: verdictOf(next, prices) };
}

/** Once spoken it stays: a conversation that was too dear is not tried with again. */
function verdictOf(state: MeterState, prices: CachePrices): Verdict {
  if (state.verdict !== 'goes_on') return state.verdict;
  if (state.dear < DEAR_IN_A_ROW) return 'goes_on';
  // To send all again is to write it once, which must come back in the requests that are still to come.
  const isWorthSending =
    state.lossPerRequest * prices.requestsAhead > (prices.write - prices.read) * state.directTotal;
  return isWorthSending ? 'send_all' : 'no_more';
}
