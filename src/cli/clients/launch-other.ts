import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Dialect } from '../../core/conversation/view.ts';
import { apiOf } from '../../core/dialects/apis.ts';
import { pathTokenOf, urlForClient } from '../../core/http/local-token.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import { urlOf } from '../addresses.ts';
import { CliError } from '../cli-error.ts';
import { loopbackVariables } from './client-variables.ts';
import { type Launch, type LaunchedClient, type LaunchFacts, takesLogin } from './launch.ts';
import { modelIn, type OtherClient } from './other-client.ts';

/** Starts a client of the table with its own variables, and with those that every client needs. */
export function launchedOther(client: OtherClient): readonly (readonly [string, LaunchedClient])[] {
  const { name, program, install, dialects } = client;
  const start = client.launch?.bind(client);
  if (start === undefined) return [];
  return [[name, { program, install, dialects, launch: (facts) => launch(client, start, facts) }]];
}

type Start = NonNullable<OtherClient['launch']>;

function launch(client: OtherClient, start: Start, facts: LaunchFacts): Launch {
  const { host, localToken, environment, upstreams, args, script } = facts;
  const url = urlForClient(urlOf(facts), client.name);
  const { args: before, variables } = start({
    url,
    urlWithToken: withPathToken(url, localToken),
    environment,
    spoken: spokenBy(client, upstreams),
    model: modelIn(args),
    localToken,
    args,
    scripts: dirname(realpathSync(script)),
  });
  return {
    args: before,
    environment: {
      ...environment,
      ...variables,
      ...Object.fromEntries(loopbackVariables(host, environment)),
      SVC_LOCAL_PROXY_TOKEN: localToken,
    },
    notes: [],
  };
}

export function withPathToken(url: string, localToken: string): string {
  return `${url}/t/${pathTokenOf(localToken)}`;
}

/**
 * The client's dialects that have a provider with a key: a login is for the client that it belongs to. With
 * none of them the client would go past svc, so it does not start.
 */
export function spokenBy(
  { title, dialects }: Pick<OtherClient, 'title' | 'dialects'>,
  upstreams: readonly Draft[],
): readonly Dialect[] {
  const spoken = dialects.filter((dialect) =>
    upstreams.some((one) => one['apiStyle'] === dialect && !takesLogin(one)),
  );
  if (spoken.length > 0) return spoken;
  throw new CliError(
    `${title} uses ${dialects.join(', ')}, and svc has no provider with a key for that API.`,
    `Add one: svc setup --yes --upstream ${apiOf(dialects[0]).provider}`,
  );
}
