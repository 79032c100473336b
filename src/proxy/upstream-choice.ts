import type { Dialect } from '../core/conversation/view.ts';
import { apiOf, DIALECTS } from '../core/dialects/apis.ts';
import { ProxyError } from '../core/errors.ts';
import type { Route } from '../core/http/routes.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import type { ConfiguredUpstream } from './dependencies.ts';

/** The settings of a proxy with one upstream per dialect. */
export interface LiveSettings {
  readonly proxy: ProxySettings;
  readonly upstreams: ReadonlyMap<Dialect, ConfiguredUpstream>;
}

/** Returns the upstream of a route. Throws UPSTREAM_NOT_CONFIGURED. */
export function upstreamFor(live: LiveSettings, route: Route): ConfiguredUpstream {
  const found = findUpstream(live, route);
  if (found !== undefined) return found;
  const dialect = 'dialect' in route ? route.dialect : undefined;
  throw new ProxyError(
    'UPSTREAM_NOT_CONFIGURED',
    `No upstream with apiStyle ${dialect ?? 'openai_responses'} is configured.`,
  );
}

/** Returns the upstream of a route; undefined if none is configured for its dialect. */
export function findUpstream(
  { upstreams }: LiveSettings,
  route: Route,
): ConfiguredUpstream | undefined {
  const dialect = 'dialect' in route ? route.dialect : undefined;
  if (route.kind === 'model') return dialect === undefined ? undefined : upstreams.get(dialect);
  const chosen = relayChoices(dialect).find((choice) => upstreams.has(choice));
  return chosen === undefined ? undefined : upstreams.get(chosen);
}

/**
 * Returns the dialects whose upstream may serve a relayed path, the best one first. The dialects of one provider
 * usually have the same upstream. A path without a dialect, such as the list of models without `anthropic-version`, is
 * most likely for OpenAI.
 */
function relayChoices(dialect: Dialect | undefined): readonly Dialect[] {
  const provider = dialect === undefined ? 'openai' : apiOf(dialect).provider;
  const ofProvider = DIALECTS.filter((name) => apiOf(name).provider === provider);
  return dialect === undefined ? [...ofProvider, ...DIALECTS] : [dialect, ...ofProvider];
}
