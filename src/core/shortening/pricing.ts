import type { Dialect } from '../conversation/dialect.ts';
import { CACHE_DEFAULT_MS } from '../conversation/cache-marks.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import { dialectOf } from '../dialects/dialects.ts';
import type { ModelFacts } from '../settings/model-facts.ts';

export interface PriceQuestion {
  readonly dialect: Dialect;
  readonly facts: ModelFacts | undefined;
  /** How long the request's cache lives. Anthropic asks twice the input price for an hour. */
  readonly cacheMs?: number;
}

/** Whether the provider offers a cache of an hour at a price of its own. */
export function hasLongCache(dialect: Dialect): boolean {
  const { write, writeHour } = dialectOf(dialect).cachePrices;
  return writeHour > write;
}

/** The model's own prices where they are published, else those of the dialect's first provider. */
export function cachePrices({ dialect, facts, cacheMs }: PriceQuestion): CachePrices {
  const usual = dialectOf(dialect).cachePrices;
  const prices = ownPrices(usual, facts);
  const isLong = (cacheMs ?? 0) > CACHE_DEFAULT_MS && hasLongCache(dialect);
  return isLong ? { ...prices, write: prices.writeHour } : prices;
}

function ownPrices(usual: CachePrices, facts: ModelFacts | undefined): CachePrices {
  const { input = 0, cacheRead, cacheWrite = input } = facts?.price ?? {};
  if (input === 0 || cacheRead === undefined) return usual;
  return {
    ...usual,
    isKnown: true,
    read: share(cacheRead, input),
    write: share(cacheWrite, input),
  };
}

/** 0.3 of 3 is 0.1, and not 0.09999999999999999: a person reads it. */
function share(price: number, input: number): number {
  return Math.round((price / input) * 1e6) / 1e6;
}
