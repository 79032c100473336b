import { asList, asRecord, asText, type Fields } from '../bytes/json-fields.ts';
import { lifetimeMs, markedMs } from '../conversation/cache-marks.ts';
import type { Dialect } from '../conversation/dialect.ts';
import type { RequestView, Shell } from '../conversation/view.ts';

/**
 * Says how long the provider keeps the prompt cache of a request after its last use. A cache that is
 * taken for dead too early costs a full rewrite, so of two answers the longer one counts.
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
// Anthropic's default, and OpenAI's for its older models.
export const CACHE_DEFAULT_MS = 5 * MINUTE_MS;

/** Milliseconds after the last use. */
export function cacheLifetimeMs(view: Pick<RequestView, 'dialect' | 'items' | 'shell'>): number {
  const ofItems = view.items.at(-1)?.soFar.cacheMs ?? 0;
  return Math.max(ofItems, ofShell(view.shell, view.dialect));
}

/** Shells are kept from request to request, so tools and system prompt are searched once. */
const known = new WeakMap<Shell, number>();

function ofShell(shell: Shell, dialect: Dialect): number {
  const lifetime = known.get(shell) ?? shellMs(shell.value, dialect);
  known.set(shell, lifetime);
  return lifetime;
}

function shellMs(value: Fields, dialect: Dialect): number {
  const retention = value['prompt_cache_retention'];
  const options = asRecord(value['prompt_cache_options']);
  const asked = [lifetimeMs(retention), lifetimeMs(options['ttl']), markedMs(value)];
  for (const part of [...asList(value['system']), ...asList(value['tools'])]) {
    asked.push(markedMs(part));
  }
  const isShort = retention === 'in_memory' || retention === 'in-memory';
  return Math.max(...asked, isShort ? CACHE_DEFAULT_MS : DEFAULTS[dialect](asText(value['model'])));
}

const DEFAULTS: Readonly<Record<Dialect, (model: string) => number>> = {
  anthropic_messages: () => CACHE_DEFAULT_MS,
  openai_responses: openaiMs,
  openai_chat_completions: openaiMs,
};

const OPENAI_MODEL = /(?:^|[/:])gpt-(\d{1,2})(?:[.-](\d{1,2}))?(?!\d)/;

/**
 * OpenAI's guide: from GPT-5.6 on an entry lives at least 30 minutes. GPT-5.5 keeps it for 24 hours; so
 * do GPT-4.1 and the other GPT-5 by default, unless the organisation keeps no data.
 */
function openaiMs(model: string): number {
  const [, major = '0', minor = '0'] = OPENAI_MODEL.exec(model.toLowerCase()) ?? [];
  const version = Number(major) * 100 + Number(minor);
  if (version >= 506) return 30 * MINUTE_MS;
  if (version >= 500 || version === 401) return 24 * HOUR_MS;
  return CACHE_DEFAULT_MS;
}
