import type { Dialect } from './dialect.ts';

/**
 * What a provider's prompt cache costs, in units of one uncached input token. From the providers'
 * price lists; the rules of what is cached were checked against the usage of 15,233 real calls.
 */
export interface CachePrices {
  /** A token that is read from the cache. */
  readonly read: number;
  /** A token that is written to it. Of two published prices the dearer one: the careful side. */
  readonly write: number;
  /**
   * Requests that a batch may count on to pay itself back. Real sessions end at any time: from 12 to
   * 18 the measured cost is flat, below and above it rises.
   */
  readonly requestsAhead: number;
  /** Tokens of this provider's models for one estimated token. */
  readonly tokenRatio: number;
}

// Entries exist at marked blocks only, so a change anywhere in the messages rewrites all of them.
const ANTHROPIC: CachePrices = { read: 0.1, write: 1.25, requestsAhead: 15, tokenRatio: 1.265 };
const ANTHROPIC_HOUR: CachePrices = { ...ANTHROPIC, write: 2 };
// The longest identical prefix is read; newer models charge for writing as well.
const OPENAI: CachePrices = { read: 0.1, write: 1.25, requestsAhead: 12, tokenRatio: 1.114 };

/** `isHourLong`: the request asks for a cache that lives an hour. */
export function cachePrices(dialect: Dialect, isHourLong: boolean): CachePrices {
  if (dialect !== 'anthropic_messages') return OPENAI;
  return isHourLong ? ANTHROPIC_HOUR : ANTHROPIC;
}

export interface BatchPrice {
  /** Estimated tokens that the batch takes out of every request from now on. */
  readonly gain: number;
  /** Estimated tokens of the messages as they would be sent without it. */
  readonly messages: number;
  /** Requests of this conversation so far. */
  readonly requests: number;
  /** Estimated tokens that the whole messages may still grow by until everything is sent again. */
  readonly tokensLeft: number;
  /** Estimated tokens of the whole messages. */
  readonly wholeMessages: number;
  readonly prices: CachePrices;
}

/**
 * What a batch saves, less what it costs: what is left of the messages is written once more instead
 * of being read, and every later request reads less. A conversation is expected to go on for half as
 * long as it has lasted, no longer than `requestsAhead`, and not beyond the window's edge, where what
 * was left out is sent again.
 */
export function batchProfit(batch: BatchPrice): number {
  const { gain, messages, requests, prices } = batch;
  const requestsLeft = (batch.tokensLeft * requests) / Math.max(1, batch.wholeMessages);
  const ahead = Math.min(requests / 2, prices.requestsAhead, requestsLeft);
  const rewritten = Math.max(0, messages - gain);
  return prices.read * ahead * gain - (prices.write - prices.read) * rewritten;
}

// The window of a model that is not known. Clients compact by themselves below it.
const WINDOW_TOKENS = 200_000;

/** By how a model's name begins; tokens that a request may have. */
const WINDOWS: readonly (readonly [starts: string, tokens: number])[] = [
  ['gpt-4o', 128_000],
  ['gpt-4-turbo', 128_000],
  ['gpt-4.1', 1_000_000],
  ['gpt-5', 272_000],
];

// A client that leaves the proxy sends all of its history at once: it must still fit, with room for
// an answer and for the client's own compaction.
const WINDOW_SHARE_MAX = 0.8;

/**
 * Estimated tokens that a request of this model may still grow by, before the client must see the true
 * size of its history: it compacts by the usage that it is told. Not above 0: it must see it now.
 */
export function tokensUntilEdge(
  model: unknown,
  tokens: number,
  { tokenRatio }: CachePrices,
): number {
  const name = typeof model === 'string' ? model : '';
  const window = WINDOWS.find(([starts]) => name.startsWith(starts))?.[1] ?? WINDOW_TOKENS;
  return (window * WINDOW_SHARE_MAX) / tokenRatio - tokens;
}
