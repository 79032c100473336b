import { serviceVaultFiles } from '../compose-service-store.ts';
import { CliError, type ExitCode } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { count, timeText } from '../../../../src/cli/listing.ts';
import { asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { isMasterKeySource } from '../../core/settings.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { type ConsoleOptions, withConsole } from './console-access.ts';
import { type Fields, textOf, timeOf } from './console-fields.ts';
import { folderOf } from './service-context.ts';
import { serviceSettings } from './service-settings.ts';

/** `svc-service vault` and `signing`: the keys around a service's secrets. None of them is shown. */

export interface VaultAddOptions extends ConsoleOptions {
  /** `file:/path`, `env:NAME` or `command:program argument`. */
  readonly from?: string;
}

/** Adds a master key to the settings of this machine, and makes it the one that seals. */
export async function addMasterKey(
  options: VaultAddOptions,
  context: CommandContext,
): Promise<string> {
  if (options.url !== undefined) {
    const hint =
      'Run it on the machine of the service, because its settings name the source of the key.';
    throw new CliError('You cannot add a master key from another machine.', hint, 2);
  }
  const { environment, terminal } = context;
  const folder = folderOf(options, context);
  const settings = await serviceSettings(folder);
  if (options.from !== undefined && !isMasterKeySource(options.from)) {
    const hint = 'Try --from env:SVC_MASTER_KEY, or --from "command:pass show svc"';
    throw new CliError('--from: expected file:/path, env:NAME or command:….', hint, 2);
  }
  const id = serviceVaultFiles.newMasterKeyId();
  const from = options.from ?? (await serviceVaultFiles.makeMasterKeyFile(id, environment));
  const keys = [...(settings.vault?.keys ?? []), { id, from }];
  await serviceVaultFiles.writeSettings(folder, { ...settings, vault: { keys } });
  try {
    await withConsole(options, context, (console) =>
      console.call({ method: 'POST', path: 'vault/keys', body: { key_id: id } }),
    );
  } catch (error) {
    await serviceVaultFiles.writeSettings(folder, settings);
    throw error;
  }
  if (options.json === true) terminal.json({ keyId: id, from });
  terminal.note(
    `The master key ${id} encrypts new secrets from now on. It is in ${from}. Keep a copy elsewhere.`,
  );
  return id;
}

export async function showVault(
  options: ConsoleOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal } = context;
  const vault = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'vault' }),
  );
  if (options.json === true) terminal.json(vault);
  else {
    const rows = listOf(vault['keys']).map((key) => [
      textOf(key['key_id']),
      textOf(key['state']),
      count(Number(key['secrets']), 'secret'),
      timeText(timeOf(key['created_at']) ?? 0),
    ]);
    const shape = { columns: terminal.columns(160), left: [0, 1, 2, 3] };
    for (const line of table(rows, shape)) terminal.out(line);
  }
  if (vault['problem'] === null) return 0;
  terminal.warn(textOf(vault['problem']));
  return 1;
}

/** Both say how many secrets they reached; exit 1 when one does not open. */
export async function walkVault(
  what: 'rotate' | 'verify',
  options: ConsoleOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal } = context;
  const answer = await withConsole(options, context, (console) =>
    console.call({ method: 'POST', path: `vault/${what}`, body: {} }),
  );
  if (options.json === true) terminal.json(answer);
  const done = what === 'rotate' ? 'is encrypted with the active master key now' : 'was tried';
  const secrets = Number(answer['secrets']);
  terminal.note(
    `${count(secrets, 'secret')} ${secrets === 1 ? done : done.replace(/^(is|was)/, plural)}.`,
  );
  const { unreadable } = answer;
  const lost = Array.isArray(unreadable) ? unreadable.map(textOf) : [];
  for (const one of lost) terminal.warn(`${one} cannot be decrypted.`);
  return lost.length === 0 ? 0 : 1;
}

function plural(word: string): string {
  return word === 'is' ? 'are' : 'were';
}

export async function retireMasterKey(
  id: string,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  if (!/^mk_[0-9a-z]{8}$/.test(id)) {
    throw new CliError('This is not the id of a master key.', 'See: svc-service vault status', 2);
  }
  await withConsole(options, context, (console) =>
    console.call({ method: 'DELETE', path: `vault/keys/${id}` }),
  );
  context.terminal.note('The master key is retired. Older backups still need it.');
}

export async function rotateSigningKey(
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  const made = await withConsole(options, context, (console) =>
    console.call({ method: 'POST', path: 'signing/rotate', body: {} }),
  );
  if (options.json === true) context.terminal.json(made);
  context.terminal.note(`The key ${textOf(made['kid'])} signs from now on.`);
}

export async function listSigningKeys(
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  const answer = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'signing' }),
  );
  const keys = listOf(answer['data']);
  if (options.json === true) {
    terminal.json(keys);
    return;
  }
  for (const key of keys) {
    const retiredAt = timeOf(key['retired_at']);
    const state = retiredAt === undefined ? 'signs' : `retired ${timeText(retiredAt)}`;
    terminal.out(`${textOf(key['kid'])}  ${state}`);
  }
}

function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(asRecord) : [];
}
