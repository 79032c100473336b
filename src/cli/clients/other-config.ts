import { urlForClient } from '../../core/http/local-token.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { loadAccess } from '../setup/load-config.ts';
import { storedUpstreams } from '../setup/missing-upstream.ts';
import { undoClientFile, writeClientFile } from './client-file.ts';
import { addressOf } from './client-variables.ts';
import { jsonSettings, type JsonSetting } from './json-settings.ts';
import { spokenBy, withPathToken } from './launch-other.ts';
import type { ClientFacts, OtherClient, OtherFile } from './other-client.ts';
import { noteFor, noteProxy } from './print-config.ts';
import { commandLine, tokenCommand } from './token-command.ts';
import { noteUndone, noteWritten, warnOfNpx } from './write-config.ts';

/** `svc print-config` for the clients of the table: prints what they need, or changes their own file. */

export interface OtherOptions {
  readonly model?: string;
  readonly write?: boolean;
  readonly undo?: boolean;
  readonly quiet?: boolean;
}

export async function configureOther(
  client: OtherClient,
  options: OtherOptions,
  context: CommandContext,
): Promise<void> {
  if (options.undo === true) return undo(client, options, context);
  if (options.write === true) {
    await writeOther(client, options, { context, script: process.argv[1] ?? '' });
    return;
  }
  const { environment, terminal } = context;
  const { text, notes } = client.print(await factsOf(client, options, context));
  terminal.out(text);
  const note = noteFor(options, terminal);
  for (const line of notes) note(line);
  if (typeof client.file === 'string') note(`There is no --write: ${client.file}`);
  noteProxy(environment, note);
}

async function factsOf(
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

/** Changes the client's own file. True when the client starts the proxy by itself from now on. */
export async function writeOther(
  client: OtherClient,
  options: OtherOptions,
  { context, script }: { readonly context: CommandContext; readonly script: string },
): Promise<boolean> {
  const { environment } = context;
  const { file, title } = client;
  if (typeof file === 'string') throw hasNoFile(client, file);
  const facts = await factsOf(client, options, context);
  const command = tokenCommand(environment, script);
  const form = formOf(client, environment, (own) =>
    own.settings({
      ...facts,
      tokenCommand: commandLine(command),
    }),
  );
  const written = await writeClientFile(form, dataFolder(environment));
  const { asksToken } = file;
  const target = { form, client: title, baseUrl: facts.url, startsProxy: asksToken };
  await noteWritten(target, written, { context, options });
  if (asksToken) warnOfNpx(command, context);
  noteProxy(environment, noteFor(options, context.terminal));
  return asksToken;
}

async function undo(client: OtherClient, options: OtherOptions, context: CommandContext) {
  const form = formOf(client, context.environment, () => []);
  const undone = await undoClientFile(form, dataFolder(context.environment));
  noteUndone(undone, { context, options });
}

function formOf(
  client: OtherClient,
  environment: Environment,
  settingsOf: (file: OtherFile) => readonly JsonSetting[],
) {
  const { file, name } = client;
  if (typeof file === 'string') throw hasNoFile(client, file);
  const { otherForm } = file;
  return jsonSettings({
    path: file.path(environment),
    command: `svc print-config ${name}`,
    settings: settingsOf(file),
    ...(otherForm !== undefined && { otherForm }),
  });
}

function hasNoFile({ name, title }: OtherClient, why: string): CliError {
  return new CliError(
    `svc changes no file of ${title}. ${why}`,
    `Start it with svc run ${name}, or see: svc print-config ${name}`,
    2,
  );
}
