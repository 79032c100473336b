import { createHash } from 'node:crypto';
import { field, listField, textField } from '../scripted-provider/loose-json.ts';
import type { PromptUsage } from '../scripted-provider/prompt-cache.ts';
import { measure } from './canonical.ts';
import type { MessagesPrefix } from './messages-prefix.ts';
import { type ResponsesItem, gptVersion } from './responses.ts';
import { isAtLeast } from './settings.ts';

/** What a request reads from the provider's prompt cache and writes to it, and what that costs. */

/** A part of the prompt that the cache may end behind. */
export interface CachePart {
  readonly digest: string;
  readonly tokens: number;
  /** Milliseconds that an entry which ends here lives; undefined: none is written. */
  readonly writesForMs: number | undefined;
}

const FIVE_MINUTES = 5 * 60_000;
const HOUR = 60 * 60_000;

/** The least that is cached: 1,024 tokens for most models of both makers (prompt-caching, 2026-08-22, 2026-09-22). */
const CACHED_TOKENS_MIN = 1_024;

/** Anthropic looks so many blocks back from each mark (prompt-caching, 2026-08-22). */
const LOOKBACK_BLOCKS = 20;

export class PromptCache {
  readonly #entries = new Map<string, { until: number; ms: number }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** `uncached`: tokens behind everything that can be cached. */
  charge(
    parts: readonly CachePart[],
    { lookback = Infinity, uncached = 0, writesFree = false }: ChargeRules = {},
  ): PromptUsage {
    const ends = chained(parts);
    const writes = ends.filter(
      ({ writesForMs, tokens }) => writesForMs !== undefined && tokens >= CACHED_TOKENS_MIN,
    );
    const read = this.#read(ends, writes, lookback);
    const total = (ends.at(-1)?.tokens ?? 0) + uncached;
    const written = Math.max(read, writes.at(-1)?.tokens ?? 0);
    const hour = writes.findLast(({ writesForMs }) => writesForMs === HOUR)?.tokens ?? 0;
    for (const { key, writesForMs: ms = 0 } of writes) {
      this.#entries.set(key, { until: this.#now() + ms, ms });
    }
    const cacheWrite = writesFree ? 0 : written - read;
    return {
      cacheRead: read,
      cacheWrite,
      cacheWriteHour: writesFree ? 0 : Math.max(0, hour - read),
      input: total - read - cacheWrite,
    };
  }

  /** The longest entry that lives; reading it makes it live on. */
  #read(ends: readonly ChainedPart[], writes: readonly ChainedPart[], lookback: number): number {
    for (const { at } of writes.toReversed()) {
      for (let back = at; back >= 0 && back >= at - lookback; back -= 1) {
        const end = ends[back];
        const entry = end === undefined ? undefined : this.#entries.get(end.key);
        if (end === undefined || entry === undefined || entry.until <= this.#now()) continue;
        entry.until = this.#now() + entry.ms;
        return end.tokens;
      }
    }
    return 0;
  }
}

interface ChargeRules {
  readonly lookback?: number;
  readonly uncached?: number;
  readonly writesFree?: boolean;
}

interface ChainedPart extends CachePart {
  readonly at: number;
  /** Of everything up to here. */
  readonly key: string;
}

function chained(parts: readonly CachePart[]): readonly ChainedPart[] {
  let [key, tokens] = ['', 0];
  return parts.map((part, at) => {
    key = createHash('sha1').update(key).update(part.digest).digest('base64url');
    tokens += part.tokens;
    return { ...part, at, key, tokens };
  });
}

/** Tools, system, messages, up to four marks; dropped thinking is not billed (2026-09-26). */
export function chargeMessages(
  cache: PromptCache,
  prefix: MessagesPrefix,
  droppedPaths: ReadonlySet<string>,
): PromptUsage {
  const pieces = [...prefix.tools, ...prefix.system, ...prefix.messages];
  const parts: CachePart[] = [];
  let start = { digest: '', tokens: 0 };
  for (const { digest, tokens, mark, path } of pieces) {
    if (droppedPaths.has(path)) continue;
    // The start of a message is no block: it goes with the first one.
    if (/^messages\.\d+$/.test(path)) start = { digest, tokens };
    else {
      parts.push({
        digest: start.digest + digest,
        tokens: start.tokens + tokens,
        writesForMs: mark === undefined ? undefined : mark === '1h' ? HOUR : FIVE_MINUTES,
      });
      start = { digest: '', tokens: 0 };
    }
  }
  return cache.charge(parts, { lookback: LOOKBACK_BLOCKS });
}

/** The only lifetime that OpenAI offers (prompt-caching, digest of 2026-09-22). */
const OPENAI_MS = 30 * 60_000;

/**
 * From GPT-5.6 on: an implicit breakpoint at the newest user message, the last tool output of a run or the
 * end of the first developer messages, and explicit ones; older models cache everything and write free.
 */
export function chargeOpenAi(
  cache: PromptCache,
  json: unknown,
  items: readonly ResponsesItem[],
): PromptUsage {
  const version = gptVersion(textField(json, 'model')) ?? [0, 0];
  const hasBreakpoints = isAtLeast(version, [5, 6]);
  const { digest, tokens } = measure([field(json, 'tools'), field(json, 'text')]);
  const instructions = measure(field(json, 'instructions') ?? '');
  const isLast = isAtLeast(version, [6, 2]);
  const implicit = field(field(json, 'prompt_cache_options'), 'mode') !== 'explicit';
  const newest = items.findLastIndex(isImplicitBreakpoint);
  const parts = items.map((item, at) => ({
    digest: item.digest,
    tokens: item.tokens,
    writesForMs:
      !hasBreakpoints || (implicit && at === newest) || hasBreakpoint(item) ? OPENAI_MS : undefined,
  }));
  const head = { digest, tokens, writesForMs: undefined };
  const first = isLast ? [head] : [head, { ...instructions, writesForMs: undefined }];
  return cache.charge([...first, ...parts], {
    uncached: isLast ? instructions.tokens : 0,
    writesFree: !hasBreakpoints,
  });
}

function isImplicitBreakpoint({ type, value }: ResponsesItem): boolean {
  const role = textField(value, 'role');
  return type.endsWith('_output') || ['user', 'developer', 'system', 'tool'].includes(role);
}

function hasBreakpoint({ value }: ResponsesItem): boolean {
  return listField(value, 'content').some(
    (part) => field(part, 'prompt_cache_breakpoint') !== undefined,
  );
}

/** In units of one uncached input token. */
export function priceOf(usage: PromptUsage, model: string): number {
  const { input, cacheRead, cacheWrite, cacheWriteHour = 0 } = usage;
  // Fable 5.1 and 5.2 read at a fortieth (whats-new-fable-5-1, 2026-09), others at a tenth; 5 minutes cost
  // 1.25, an hour 2 (prompt-caching, 2026-08-22); OpenAI writes at 1.25 (2026-09-22).
  const read = /fable|mythos/.test(model) ? 0.025 : 0.1;
  return input + cacheRead * read + (cacheWrite - cacheWriteHour) * 1.25 + cacheWriteHour * 2;
}
