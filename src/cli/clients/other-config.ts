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
import type { ClientFacts, OtherClient } from './other-client.ts';
import { noteFor, noteProxy } from './print-config.ts';
import { commandLine, tokenCommand } from './token-command.ts';
import { type Asked, noteUndone, noteWritten, warnOfNpx } from './write-config.ts';

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
  const { environment, terminal } = context;
  const access = await loadAccess(environment);
  const url = addressOf(access);
  const facts: ClientFacts = {
    url,
    urlWithToken: withPathToken(url, access.localToken),
    environment,
    spoken: spokenBy(client, await storedUpstreams(environment)),
    model: options.model,
  };
  if (options.write === true) return write(client, facts, { options, context });
  const { text, notes } = client.print(facts);
  terminal.out(text);
  const note = noteFor(options, terminal);
  for (const line of notes) note(line);
  noteProxy(environment, note);
}

async function write(
  client: OtherClient,
  facts: ClientFacts,
  { options, context }: Asked,
): Promise<void> {
  const { environment } = context;
  const { file, title } = client;
  if (file === undefined) throw hasNoFile(client);
  const command = tokenCommand(environment, process.argv[1] ?? '');
  const form = formOf(client, environment, (own) =>
    own.settings({
      ...facts,
      tokenCommand: commandLine(command),
    }),
  );
  const written = await writeClientFile(form, dataFolder(environment));
  const { asksToken } = file;
  await noteWritten({ form, client: title, baseUrl: facts.url, asksToken }, written, {
    context,
    options,
  });
  if (asksToken) warnOfNpx(command, context);
  noteProxy(environment, noteFor(options, context.terminal));
}

async function undo(client: OtherClient, options: OtherOptions, context: CommandContext) {
  const form = formOf(client, context.environment, () => []);
  const undone = await undoClientFile(form, dataFolder(context.environment));
  noteUndone(undone, { context, options });
}

function formOf(
  client: OtherClient,
  environment: Environment,
  settingsOf: (file: NonNullable<OtherClient['file']>) => readonly JsonSetting[],
) {
  const { file, name } = client;
  if (file === undefined) throw hasNoFile(client);
  const command = `svc print-config ${name}`;
  return jsonSettings({ path: file.path(environment), command, settings: settingsOf(file) });
}

function hasNoFile({ name, title }: OtherClient): CliError {
  return new CliError(
    `svc changes no file of ${title}.`,
    `Start it with svc run ${name}, or see: svc print-config ${name}`,
    2,
  );
}
