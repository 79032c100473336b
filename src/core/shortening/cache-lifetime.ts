import { asList, asRecord, asText, type Fields } from '../bytes/json-fields.ts';
import { CACHE_DEFAULT_MS, lifetimeMs, markedMs } from '../conversation/cache-marks.ts';
import type { Dialect } from '../conversation/dialect.ts';
import { dialectOf } from '../dialects/dialects.ts';
import type { RequestView, Shell } from '../conversation/view.ts';

/**
 * Says how long the provider keeps the prompt cache of a request after its last use. A cache that is
 * taken for dead too early costs a full rewrite, so of two answers the longer one counts.
 */

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
  return Math.max(
    ...asked,
    isShort ? CACHE_DEFAULT_MS : dialectOf(dialect).cacheDefaultMs(asText(value['model'])),
  );
}
