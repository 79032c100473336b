import { urlForClient, withPathToken } from '../../core/http/local-token.ts';
import { type CommandContext, scriptPath } from '../context.ts';
import { loadAccess, storedUpstreams } from '../setup/load-config.ts';
import { addressOf, loopbackVariables } from './client-variables.ts';
import { type ClientFacts, type OtherClient, modelIn } from './other-clients.ts';
import { noteFor, noteProxy } from './print-config.ts';
import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Dialect } from '../../core/conversation/view.ts';
import { apiOf } from '../../core/dialects/apis.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import { urlOf } from '../listing.ts';
import { CliError } from '../cli-error.ts';
import { type Launch, type LaunchedClient, type LaunchFacts, takesLogin } from './launch.ts';

/** Prints the settings of the clients in other-clients.ts, and makes their arguments and variables for `svc run`. */

export interface OtherOptions {
  readonly model?: string;
  readonly quiet?: boolean;
}

export async function printOther(
  client: OtherClient,
  options: OtherOptions,
  context: CommandContext,
): Promise<void> {
  const { environment, terminal } = context;
  const { text, notes } = client.print(await factsOf(client, options, context));
  terminal.out(text);
  const note = noteFor(options, terminal);
  for (const line of notes) note(line);
  if (typeof client.file === 'string') note(`svc connect does not do this: ${client.file}`);
  noteProxy(environment, note);
}

/** Returns the facts for a client. Throws CliError if svc has no provider for it. */
export async function factsOf(
  client: OtherClient,
  { model }: OtherOptions,
  { environment }: CommandContext,
): Promise<ClientFacts> {
  const access = await loadAccess(environment);
  const url = urlForClient(addressOf(access), client.name);
  return {
    url,
    urlWithToken: withPathToken(url, access.localToken),
    environment,
    spoken: spokenBy(client, await storedUpstreams(environment)),
    model,
  };
}

/** Returns a list with the client's name and what `svc run` needs; an empty list if it cannot start the client. */
export function launchedOther(client: OtherClient): readonly (readonly [string, LaunchedClient])[] {
  const { name, program, install, dialects } = client;
  const start = client.launch?.bind(client);
  if (start === undefined) return [];
  return [[name, { program, install, dialects, launch: (facts) => launch(client, start, facts) }]];
}

type Start = NonNullable<OtherClient['launch']>;

function launch(client: OtherClient, start: Start, facts: LaunchFacts): Launch {
  const { host, localToken, environment, upstreams, args } = facts;
  const url = urlForClient(urlOf(facts), client.name);
  const { args: before, variables } = start({
    url,
    urlWithToken: withPathToken(url, localToken),
    environment,
    spoken: spokenBy(client, upstreams),
    model: modelIn(args),
    localToken,
    args,
    scripts: dirname(realpathSync(scriptPath())),
  });
  return {
    args: before,
    environment: {
      ...environment,
      ...variables,
      ...loopbackVariables(host, environment),
      SVC_LOCAL_PROXY_TOKEN: localToken,
    },
    notes: [],
  };
}

/**
 * Returns the client's dialects for which svc has a provider with a key, or one that needs no key: a provider with a
 * login serves only the client that has the login. Throws CliError if there is none, because the client would then
 * bypass svc.
 */
function spokenBy(
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
