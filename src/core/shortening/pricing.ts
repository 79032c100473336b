import type { Dialect, RequestView } from '../conversation/view.ts';
import { LONG_MARK } from '../request/clients.ts';
import { CACHE_DEFAULT_MS, lifetimeMs, markedMs } from '../dialects/common.ts';
import type { CachePrices } from '../dialects/descriptor.ts';
import { dialectOf } from '../dialects/dialects.ts';
import type { ModelFacts } from '../settings/model-facts.ts';
import { asList, asRecord, asText, type Fields } from '../bytes/json-fields.ts';

interface PriceQuestion {
  readonly dialect: Dialect;
  readonly facts: ModelFacts | undefined;
  /** How long the request is cached, in milliseconds. For an hour Anthropic charges twice the input price per write. */
  readonly cacheMs?: number;
}

/** Says whether the provider charges a higher price for a cache entry of an hour. */
export function hasLongCache(dialect: Dialect): boolean {
  const { write, writeHour } = dialectOf(dialect).cachePrices;
  return writeHour > write;
}

/** Returns the model's own prices if they are known, and otherwise those of the provider that owns the dialect. */
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

/** Divides and rounds, so that people read 0.1 and not 0.09999999999999999. */
function share(price: number, input: number): number {
  return Math.round((price / input) * 1e6) / 1e6;
}

/**
 * Returns for how many milliseconds after its last use the provider caches a request. If the request states several
 * lifetimes, the longest counts: taking a live cache for an expired one would make the provider write everything again.
 */
export function cacheLifetimeMs(view: Pick<RequestView, 'dialect' | 'items' | 'shell'>): number {
  const ofItems = view.items.at(-1)?.soFar.cacheMs ?? 0;
  return Math.max(ofItems, shellMs(view.shell.value, view.dialect));
}

function shellMs(value: Fields, dialect: Dialect): number {
  const retention = value['prompt_cache_retention'];
  const options = asRecord(value['prompt_cache_options']);
  const asked = [lifetimeMs(retention), lifetimeMs(options['ttl']), markedMs(value)];
  for (const part of [...asList(value['system']), ...asList(value['tools'])]) {
    asked.push(markedMs(part));
  }
  const isShort = retention === 'in_memory' || retention === 'in-memory';
  return Math.max(
    ...asked,
    isShort ? CACHE_DEFAULT_MS : dialectOf(dialect).cacheDefaultMs(asText(value['model'])),
  );
}

const LONG_WINDOW = 1_000_000;

interface RoomQuestion {
  readonly model: unknown;
  readonly facts: ModelFacts | undefined;
  /** True if the request asks for the model's longest window. */
  readonly isLong: boolean;
  /** The most tokens of the answer, as the request states them: not checked yet. */
  readonly answerTokens: unknown;
}

/** Returns how many tokens a request to the model may have; undefined if its window is unknown. */
export function inputRoom({
  model,
  facts,
  isLong,
  answerTokens,
}: RoomQuestion): number | undefined {
  const asksLong = isLong || (typeof model === 'string' && LONG_MARK.test(model));
  if (facts === undefined) return asksLong ? LONG_WINDOW : undefined;
  const window = asksLong ? Math.max(LONG_WINDOW, facts.windowTokens) : facts.windowTokens;
  const input = asksLong ? Math.max(LONG_WINDOW, facts.inputTokensMax) : facts.inputTokensMax;
  const asked = typeof answerTokens === 'number' && answerTokens > 0 ? answerTokens : 0;
  return Math.max(0, Math.min(input, window - Math.min(asked, facts.outputTokensMax)));
}
