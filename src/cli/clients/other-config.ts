import { urlForClient } from '../../core/http/local-token.ts';
import type { CommandContext } from '../context.ts';
import { loadAccess } from '../setup/load-config.ts';
import { storedUpstreams } from '../setup/missing-upstream.ts';
import { addressOf } from './client-variables.ts';
import { spokenBy, withPathToken } from './launch-other.ts';
import type { ClientFacts, OtherClient } from './other-client.ts';
import { noteFor, noteProxy } from './print-config.ts';

/** Prints what the clients of the table need. */

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

/** Throws CliError if svc has no provider for the client. */
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
