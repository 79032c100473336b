import { CACHE_DEFAULT_MS } from '../core/dialects/common.ts';
import type { RequestView } from '../core/conversation/view.ts';
import {
  cacheMissOf,
  type Comparison,
  PrefixHistory,
  type ResumedPrefix,
} from '../core/meter/cache-miss.ts';
import { isCorrection } from '../core/meter/hold-out.ts';
import { isBoundTo, ownChangesOf, sketchOf } from '../core/meter/prefix.ts';
import { itemNotes } from '../core/plan/item-notes.ts';
import { recallUse } from '../core/recall/recall-use.ts';
import type { ModelFacts } from '../core/settings/model-facts.ts';
import { longFactor, meter, paidFor } from '../core/shortening/meter.ts';
import { cacheLifetimeMs, cachePrices, hasLongCache } from '../core/shortening/pricing.ts';
import type { RequestRow } from '../ports/request-log.ts';
import type { ConversationState, Reading } from './conversations.ts';
import type { Accounts, EndedRequest } from './dependencies.ts';

/**
 * Completes the rows of the request log after the answer: the price of a request and its price without svc, why the
 * provider's cache missed, what became of its items, what the model used of its recalled block, and whether its prompt
 * corrects the agent.
 */
export function accountsOf(factsOf: FactsOf): Accounts {
  return {
    compare: ({ identity, view, state }, startedAt) => {
      if (identity.kind !== 'main' && identity.kind !== 'subagent') return undefined;
      return comparePrefix(view, state, startedAt);
    },
    complete: (row, ended) => {
      const noted = { ...row, ...recallOf(ended), ...itemsOf(ended), ...correctionOf(row, ended) };
      const whole = priced(noted, ended, factsOf);
      return { ...whole, ...missed(whole, ended, factsOf) };
    },
  };
}

/**
 * Notes whether the newest prompt corrects the agent, which the hold-out experiment counts (core/meter/hold-out.ts). It
 * reads only the newest item, so that each correction counts once.
 */
function correctionOf(
  { trial, kind }: RequestRow,
  { reading }: EndedRequest,
): Pick<RequestRow, 'isCorrection'> {
  if (trial === undefined || kind !== 'main') return {};
  const text = reading?.view.items.at(-1)?.humanText ?? '';
  return isCorrection(text) ? { isCorrection: true } : {};
}

type FactsOf = (model: string) => ModelFacts | undefined;

/**
 * Compares a request with the nearest earlier one, and notes in `prefixChangedBy` if the client has changed something
 * to which thinking is bound. Call it once per request, in order.
 */
export function comparePrefix(
  view: RequestView,
  state: ConversationState,
  startedAt: number,
): Comparison {
  state.sent ??= new PrefixHistory();
  const comparison = state.sent.compare(sketchOf(view), startedAt);
  const { before, difference } = comparison;
  // Without thinking a changed prefix does no harm: the conversation is new, or was compacted.
  if (!view.items.some(({ hasReasoning }) => hasReasoning)) state.prefixChangedBy = undefined;
  else if (before !== undefined && difference !== undefined) {
    const isBehind = view.items
      .slice(before.sketch.items.length)
      .some(({ hasReasoning }) => hasReasoning);
    if (isBoundTo(difference, isBehind)) state.prefixChangedBy ??= 'client';
  }
  return comparison;
}

/**
 * Returns why the provider's cache did not serve this request, and how many thinking blocks the request lacks. Keeps an
 * accepted request for the next comparison.
 */
function missed(
  row: RequestRow,
  { reading, plan, placements, startedAt, answeredAt, comparison }: EndedRequest,
  factsOf: FactsOf,
): Pick<RequestRow, 'miss' | 'droppedThoughts'> {
  if (comparison === undefined || reading === undefined) return {};
  const { view, state } = reading;
  const { sketch, before, droppedThoughts } = comparison;
  const own = ownChangesOf(view, plan, placements);
  const times = { at: startedAt, wallAt: row.at };
  const { usage, dialect, cacheMs = CACHE_DEFAULT_MS } = row;
  const facts = factsOf(row.model);
  const miss =
    usage &&
    cacheMissOf({
      ...times,
      comparison,
      hasCache: state.sent?.hasCache === true,
      own,
      usage,
      prices: cachePrices({ dialect, facts, cacheMs }),
      factor: longFactor(usage, facts?.price),
      forwardedTokens: row.forwardedInputTokens,
      elidedTokens: row.compressionMode === 'shadow' ? 0 : row.elidedTokens,
      isCleared: (row.cleared?.tokens ?? 0) > 0 && plan.asksToClear === true,
      resumed: state.sent?.size === 0 ? resumedPrefix(reading) : undefined,
    });
  if (row.status >= 200 && row.status < 300) {
    const lifetimeMs = messagesLifetimeMs(view);
    state.sent?.keep({ ...times, sketch, own, usage, answeredAt, lifetimeMs }, before);
  }
  return {
    ...(miss === undefined ? {} : { miss }),
    ...(droppedThoughts === 0 ? {} : { droppedThoughts }),
  };
}

/** Returns the prefix that an earlier process must have sent: everything before the newest answer. */
function resumedPrefix({ view, state }: Reading): ResumedPrefix | undefined {
  const pausedMs = state.resumedAfterMs;
  if (pausedMs === undefined) return undefined;
  const end = view.items.findLastIndex(({ role }) => role === 'assistant');
  const from = view.items.findLastIndex(({ role }, at) => at < end && role !== 'assistant');
  const tokens = view.items
    .slice(0, from + 1)
    .reduce((sum, item) => sum + item.tokens, view.shell.tokens);
  return { tokens, pausedMs, lifetimeMs: messagesLifetimeMs(view) };
}

/** Adds the price and the price without svc to the row, and keeps the state for the next request; see meter(). */
function priced(row: RequestRow, { reading }: EndedRequest, factsOf: FactsOf): RequestRow {
  const { usage, cacheMs = CACHE_DEFAULT_MS } = row;
  if (usage === undefined) return row;
  const facts = factsOf(row.model);
  const prices = cachePrices({ dialect: row.dialect, facts, cacheMs });
  if (row.kind !== 'main' || reading === undefined) {
    const paid = paidFor(usage, prices, facts?.price);
    return { ...row, price: { paid, direct: paid } };
  }
  const { state } = reading;
  const metered = meter(state.metered, {
    at: row.at,
    originalTokens: row.originalInputTokens,
    forwardedTokens: row.forwardedInputTokens,
    // In shadow mode svc sends the client's bytes, so it has left nothing out.
    elidedTokens: row.compressionMode === 'shadow' ? 0 : row.elidedTokens,
    usage,
    prices,
    list: facts?.price,
    cacheMs,
  });
  state.metered = metered.state;
  return { ...row, price: metered.price };
}

/** Counts what the model used of the recalled block. */
function recallOf({ reading, placements, text }: EndedRequest): Pick<RequestRow, 'recall'> {
  if (reading === undefined || placements.length === 0) return {};
  const recall = recallUse(reading.view, placements, text);
  return recall === undefined ? {} : { recall };
}

/** Lists the items of the request and what became of them. A request that was forwarded unchanged has no list. */
function itemsOf({ reading, plan, placements }: EndedRequest): Pick<RequestRow, 'items'> {
  const { shortening, edits } = plan;
  if (reading === undefined || shortening === undefined || edits.length === 0) return {};
  return { items: itemNotes({ view: reading.view, placements, shortening }) };
}

/** Returns for how many milliseconds the provider caches the messages. Marks on tools and system do not count. */
function messagesLifetimeMs(view: RequestView): number {
  if (!hasLongCache(view.dialect)) return cacheLifetimeMs(view);
  return Math.max(CACHE_DEFAULT_MS, view.items.at(-1)?.soFar.cacheMs ?? 0);
}
