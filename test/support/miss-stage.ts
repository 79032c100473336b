import { type CacheMiss, cacheMissOf, PrefixHistory } from '../../src/core/meter/cache-miss.ts';
import { type OwnChanges, sketchOf } from '../../src/core/meter/prefix.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { CACHE_DEFAULT_MS } from '../../src/core/dialects/common.ts';
import { cacheLifetimeMs, cachePrices, hasLongCache } from '../../src/core/shortening/pricing.ts';
import type { PromptUsage } from './scripted-provider/prompt-cache.ts';
import { chargeMessages, chargeOpenAi, PromptCache } from './strict-provider/prompt-cache.ts';
import { readMessages } from './strict-provider/messages-prefix.ts';
import { readInput } from './strict-provider/responses.ts';
import { READINGS } from './strict-provider/settings.ts';
import { viewOf } from './view-of.ts';

export type Body = Record<string, unknown>;
export type Json = Record<string, unknown>;

/** svc's comparison of requests, in front of a provider that caches as the real ones do. The test moves the clock. */
export class MissStage {
  readonly #dialect: Dialect;
  /** By the model: each has a cache of its own. */
  readonly #caches = new Map<unknown, PromptCache>();
  #now = 0;
  readonly #history = new PrefixHistory();

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  #usageOf(json: Body): PromptUsage {
    const dialect = this.#dialect;
    const cache = this.#caches.get(json['model']) ?? new PromptCache(() => this.#now);
    this.#caches.set(json['model'], cache);
    if (hasLongCache(dialect)) {
      return chargeMessages(cache, readMessages(asCached(json), READINGS), new Set());
    }
    const input = dialect === 'openai_responses' ? json['input'] : json['messages'];
    return chargeOpenAi(cache, json, readInput({ input }));
  }

  forget(): void {
    this.#caches.clear();
  }

  pause(minutes: number): void {
    this.#now += minutes * 60_000;
  }

  send(client: Body, sent: Body, own: OwnChanges): Sent {
    const dialect = this.#dialect;
    this.#now += 20_000;
    const usage = { ...this.#usageOf(sent), output: 1 };
    const view = viewOf(dialect, client);
    const sketch = sketchOf(view);
    const at = this.#now;
    const comparison = this.#history.compare(sketch, at);
    const miss = cacheMissOf({
      comparison,
      hasCache: this.#history.hasCache,
      own,
      usage,
      prices: cachePrices({ dialect, facts: undefined }),
      factor: 1,
      forwardedTokens: viewOf(dialect, sent).tokens,
      elidedTokens: 0,
      isCleared: false,
      at,
      wallAt: at,
    });
    const items = view.items.at(-1)?.soFar.cacheMs ?? 0;
    const lifetimeMs = hasLongCache(dialect)
      ? Math.max(CACHE_DEFAULT_MS, items)
      : cacheLifetimeMs(view);
    this.#history.keep(
      { sketch, own, usage, at, answeredAt: at + 1_000, wallAt: at, lifetimeMs },
      comparison.before,
    );
    return { miss, usage };
  }
}

/**
 * What counts for Anthropic's cache of the messages beside them, written where the first message begins:
 * tool_choice, effort, thinking and images anywhere ("Prompt caching", what invalidates it, 2026-11). The
 * provider takes Claude Code's line of billing out of the system prompt.
 */
function asCached(json: Body): Body {
  const { tool_choice, output_config, thinking } = json;
  const list = json['messages'] as readonly Json[];
  const images = list.filter((item) => JSON.stringify(item).includes('"image"')).length;
  const beside = { tool_choice, output_config, thinking, images };
  const system = (json['system'] as readonly Json[]).filter(
    ({ text }) => !String(text).startsWith('x-anthropic-billing-header:'),
  );
  const messages = list.map((item, at) => (at === 0 ? { ...item, beside } : item));
  return { ...json, system, messages };
}

interface Sent {
  readonly miss: CacheMiss | undefined;
  readonly usage: PromptUsage;
}

export function toolOf(dialect: Dialect, name: string, description: string): Json {
  if (dialect === 'anthropic_messages') {
    return { name, description, input_schema: { type: 'object' } };
  }
  const described = { name, description, parameters: { type: 'object' } };
  return dialect === 'openai_responses'
    ? { type: 'function', ...described }
    : { type: 'function', function: described };
}

const WORDS = [
  'parser',
  'staging',
  'port',
  'runbook',
  'deploy',
  'cache',
  'queue',
  'index',
  'token',
];

/** About so many words that no other text has. */
export function prose(seed: number, count: number): string {
  let state = seed + 1;
  return Array.from({ length: count }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return `${WORDS[state % WORDS.length]}${state % 97}`;
  }).join(' ');
}

export const MARK = { cache_control: { type: 'ephemeral' } };

export function withTools(body: Body, change: (tools: readonly Json[]) => readonly Json[]): Body {
  return { ...body, tools: change(body['tools'] as readonly Json[]) };
}

/** The last part of the system prompt in the form of each dialect. */
export function withSystem(body: Body, dialect: Dialect, change: (text: string) => string): Body {
  if (dialect === 'openai_responses') {
    return { ...body, instructions: change(String(body['instructions'])) };
  }
  if (dialect === 'openai_chat_completions') {
    const [system, ...others] = body['messages'] as readonly Json[];
    const content = change(String(system?.['content']));
    return { ...body, messages: [{ ...system, content }, ...others] };
  }
  const parts = body['system'] as readonly Json[];
  const last = parts.at(-1);
  const text = change(String(last?.['text']));
  return { ...body, system: [...parts.slice(0, -1), { ...last, text }] };
}

/** Chat's system message stays in front. */
export function withList(
  body: Body,
  dialect: Dialect,
  change: (list: readonly Json[]) => readonly Json[],
): Body {
  const name = dialect === 'openai_responses' ? 'input' : 'messages';
  const list = body[name] as readonly Json[];
  const head = list[0]?.['role'] === 'system' ? list.slice(0, 1) : [];
  return { ...body, [name]: [...head, ...change(list.slice(head.length))] };
}
