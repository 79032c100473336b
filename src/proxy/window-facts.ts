import type { CachePrices } from '../core/dialects/descriptor.ts';
import { cacheLifetimeMs } from '../core/shortening/cache-lifetime.ts';
import { cachePrices } from '../core/shortening/pricing.ts';
import type { Measure, WindowFacts } from '../core/shortening/window.ts';
import type { Reading } from './read-request.ts';

/** The facts of a request by which its model's window and its prices are judged. */

export function windowOf(reading: Reading, measure?: Measure): WindowFacts {
  const { value } = reading.view.shell;
  return {
    model: value['model'],
    answerTokens: value['max_tokens'] ?? value['max_completion_tokens'],
    isLong: reading.asksForLongWindow,
    tokens: reading.view.tokens,
    tokenRatio: pricesOf(reading).tokenRatio,
    measure,
  };
}

export function pricesOf(reading: Reading): CachePrices {
  return cachePrices(reading.view.dialect, cacheLifetimeMs(reading.view));
}
