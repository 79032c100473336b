import { cacheShare } from '../../core/meter/figures.ts';
import { groupBy } from '../../core/bytes/batches.ts';
import type { RequestRow } from '../../ports/request-log.ts';
import type { NewsEvent, NowAnswer } from '../../ports/ui-api.ts';

export type Conversation = ReturnType<typeof summed>;

/** Adds an event's requests to the loaded ones. The page may have loaded some of them already. */
export function withNews({ recent }: NowAnswer, { open, finished }: NewsEvent): NowAnswer {
  const known = new Set(recent.map(({ id }) => id));
  return { open, recent: [...finished.filter(({ id }) => !known.has(id)).toReversed(), ...recent] };
}

/**
 * Groups requests by conversation, newest conversation first. Leaves out requests that svc did not read, which have
 * no conversation.
 */
export function conversationsOf(
  open: readonly RequestRow[],
  finished: readonly RequestRow[],
): readonly Conversation[] {
  const own = [...open, ...finished].filter(({ conversation }) => conversation !== '');
  return [...groupBy(own, ({ conversation }) => conversation)]
    .map(([key, rows]) => summed(key, rows))
    .toSorted((one, other) => other.at - one.at);
}

/** Sums up the requests of a conversation. The result counts open requests in `open`, and has the others in `rows`. */
function summed(key: string, rows: readonly RequestRow[]) {
  const finished = rows.filter(({ end }) => end !== 'open').toSorted((a, b) => b.at - a.at);
  const newest = rows.reduce((one, other) => (other.at > one.at ? other : one));
  // Side calls use smaller models, so show the model of the conversation's main requests.
  const main = rows.find(({ kind }) => kind === 'main') ?? newest;
  const asked = finished.filter(({ memoryState }) => ASKED.includes(memoryState));
  const { paid, direct } = priceOf(finished);
  return {
    key,
    client: main.client,
    space: main.space,
    model: main.model,
    at: newest.at,
    open: rows.length - finished.length,
    rows: finished,
    asked: asked.length,
    recalled: asked.filter(({ memoryState }) => memoryState === 'recalled').length,
    elidedTokens: finished.find(({ kind }) => kind === 'main')?.elidedTokens ?? 0,
    cache: cacheShare(finished),
    // A share of the direct price: -0.1 is 10 % cheaper than direct.
    cost: direct === 0 ? undefined : (paid - direct) / direct,
    isDegraded: finished.some(({ memoryState }) => memoryState.startsWith('degraded')),
    hasFailed: finished.some(({ status }) => status >= 400),
  };
}

/** The memory states of requests that could carry memories, new or repeated ones. */
const ASKED = ['recalled', 'empty'];

export function priceOf(rows: readonly RequestRow[]): { paid: number; direct: number } {
  let [paid, direct] = [0, 0];
  for (const { price } of rows) {
    paid += price?.paid ?? 0;
    direct += price?.direct ?? 0;
  }
  return { paid, direct };
}

/** Returns the sum of the prices up to each request that has a price, oldest first. `rows`: newest first. */
export function curveOf(
  rows: readonly RequestRow[],
): readonly { readonly paid: number; readonly direct: number }[] {
  let [paid, direct] = [0, 0];
  return rows.toReversed().flatMap(({ price }) => {
    if (price === undefined) return [];
    paid += price.paid;
    direct += price.direct;
    return [{ paid, direct }];
  });
}

/** Returns the batches: the main requests in which more items were left out than in the one before, newest first. */
export function batchesOf(rows: readonly RequestRow[]) {
  const main = rows.filter(({ kind }) => kind === 'main').toReversed();
  const batches = main.flatMap(({ at, id, elidedItems, elidedTokens }, index) => {
    const before = main[index - 1];
    const items = elidedItems - (before?.elidedItems ?? 0);
    return items > 0 ? [{ at, id, items, tokens: elidedTokens - (before?.elidedTokens ?? 0) }] : [];
  });
  return batches.toReversed();
}

/** Returns for each block the first request that had it; the newest of these requests comes first. */
export function blocksOf(rows: readonly RequestRow[]): readonly RequestRow[] {
  const seen = new Set<number>();
  return rows
    .toReversed()
    .filter(({ recall }) => {
      if (recall === undefined || seen.has(recall.exchange)) return false;
      seen.add(recall.exchange);
      return true;
    })
    .toReversed();
}
