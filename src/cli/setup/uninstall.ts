import { basename, dirname, join } from 'node:path';
import { cacheFolder, dataFolder, configFolder } from '../../adapters/files/own-folders.ts';
import { readConfigFile } from '../../adapters/files/config-file.ts';
import { keptNames, ownNamesIn } from '../../adapters/files/folder-purpose.ts';
import {
  contentsOf,
  type FolderContents,
  removeContents,
  removeEmptyFolders,
} from '../../adapters/files/removal.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { parseAccess } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { urlOf } from '../listing.ts';
import { CliError, type ExitCode, reportError } from '../cli-error.ts';
import { type ClientFileForm, clientRecords, undoClientFile } from '../clients/client-file.ts';
import { codexFile, providerBlock } from '../clients/codex-file.ts';
import { pluginFile } from '../clients/hook-files.ts';
import { jsonSettings } from '../clients/json-settings.ts';
import type { CommandContext, Call } from '../context.ts';
import { findByFiles, OwnProxies } from '../proxy/own-proxies.ts';
import { nameBound } from '../proxy/recent-trouble.ts';
import { stopProxies } from '../proxy/status.ts';
import { uninstallUnit, unitFileIn } from '../proxy/unit.ts';

/**
 * Runs `svc uninstall`: shows and removes what svc made on this machine, except the files of a memory service, and
 * restores the settings of clients. Memories stay with --keep-memory.
 */

interface UninstallOptions {
  readonly dryRun?: boolean;
  readonly keepMemory?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

type Findings = Awaited<ReturnType<typeof find>>;

export async function uninstall({ options, context }: Call<UninstallOptions>): Promise<ExitCode> {
  const findings = await find(options, context);
  report(findings, options, context);
  nameBound(dataFolder(context.environment), Date.now(), context.terminal);
  if (options.dryRun === true || isNothing(findings)) return 0;
  if (options.yes !== true) {
    const confirm = context.asker?.();
    if (confirm === undefined) {
      throw new CliError(
        'Nothing was removed, because there is no terminal to ask on.',
        'To confirm, add --yes. To keep the memories: svc uninstall --keep-memory --yes',
        2,
      );
    }
    if (!(await confirm('Remove all of this?'))) {
      context.terminal.note('Nothing was removed.');
      return 130;
    }
  }
  // List the files again: nameBound() has read `state.db`, and SQLite may have created files beside it.
  return remove({ ...findings, folders: await ownFolders(options, context.environment) }, context);
}

async function find(options: UninstallOptions, { environment }: CommandContext) {
  const config = await readConfigFile(configFolder(environment)).catch(() => undefined);
  const { access } = parseAccess(config?.value, environment);
  const data = dataFolder(environment);
  const memory = isRecord(config?.value) ? config.value['memory'] : undefined;
  return {
    proxies:
      access === undefined ? await findByFiles(data) : await new OwnProxies(data, access).find(),
    unitFile: await unitFileIn(environment),
    clientFiles: await changedClientFiles(environment, data),
    folders: await ownFolders(options, environment),
    hasHostedMemory: isRecord(memory) && memory['kind'] === 'hosted',
  };
}

async function ownFolders(
  { keepMemory = false }: UninstallOptions,
  environment: Environment,
): Promise<readonly FolderContents[]> {
  const hasOwnData = Boolean(environment['SVC_DATA_HOME']);
  const asked = [
    {
      folder: configFolder(environment),
      isStandard: !environment['SVC_CONFIG_HOME'],
      parents: 1,
      ownNames: ownNamesIn('config'),
      // Keep a service's master keys: without them its data could never be read again.
      kept: keptNames(false),
    },
    // If SVC_DATA_HOME is set, the data folder contains the cache, so remove the cache first.
    {
      folder: cacheFolder(environment),
      isStandard: !hasOwnData,
      parents: 1,
      ownNames: ownNamesIn('cache'),
    },
    {
      folder: dataFolder(environment),
      isStandard: !hasOwnData,
      parents: 2,
      ownNames: ownNamesIn('data'),
      kept: keptNames(keepMemory),
    },
  ];
  const found = await Promise.all(asked.map(contentsOf));
  return found.flatMap((contents) => (contents === undefined ? [] : [contents]));
}

/** Returns the clients' settings files that svc has changed, each with what is needed to restore it. */
async function changedClientFiles(
  environment: Environment,
  data: string,
): Promise<readonly ClientFileForm[]> {
  return (await clientRecords(data)).map(({ named: path, changes }) => {
    const isToml = changes.some(({ toml }) => toml !== undefined);
    if (isToml) return { ...codexFile(environment, providerBlock([])), path };
    if (changes.some(({ whole }) => whole !== undefined)) return pluginFile(path, '', []);
    return jsonSettings({ path, name: 'NAME', settings: [] });
  });
}

function isNothing({ proxies, unitFile, clientFiles, folders }: Findings): boolean {
  const isEmpty = folders.every(({ own }) => own.length === 0);
  return proxies.own.length === 0 && unitFile === undefined && clientFiles.length === 0 && isEmpty;
}

function report(findings: Findings, options: UninstallOptions, { terminal }: CommandContext): void {
  const { proxies, unitFile, clientFiles, folders, hasHostedMemory } = findings;
  const removed = folders.flatMap(({ own }) => own);
  const stays = folders.flatMap(({ others }) => others);
  if (options.json === true) {
    const stopped = proxies.own.map(({ pid, port }) => ({ pid, port }));
    const restored = clientFiles.map(({ path }) => path);
    terminal.json({ stopped, unit: unitFile ?? null, restored, removed, stays });
    return;
  }
  if (isNothing(findings)) terminal.note('There are no files or settings of svc on this machine.');
  else terminal.note(options.dryRun === true ? 'svc would remove:' : 'svc removes:');
  for (const proxy of proxies.own) terminal.out(`stop     ${urlOf(proxy)} (process ${proxy.pid})`);
  if (unitFile !== undefined) terminal.out(`remove   ${unitFile}`);
  for (const { path } of clientFiles) terminal.out(`restore  ${path}`);
  for (const path of removed) terminal.out(`remove   ${path}`);
  for (const path of stays) terminal.out(`stays    ${path}`);
  for (const { pid, port } of proxies.unproven) {
    terminal.warn(
      `Process ${pid} (port ${port}) does not answer as your proxy, so svc does not stop it.`,
    );
  }
  if (hasHostedMemory) {
    terminal.note('Memories in the memory service stay there: see svc memory forget --help.');
  }
  terminal.note('The package stays until you remove it: npm uninstall -g svc-local-proxy');
  terminal.note('Lines that you added yourself to shell profiles or clients stay too.');
}

async function remove(
  { proxies, unitFile, clientFiles, folders }: Findings,
  context: CommandContext,
): Promise<ExitCode> {
  const { environment, terminal } = context;
  // Remove the unit first, because the service manager would restart a stopped proxy.
  if (unitFile !== undefined) {
    await uninstallUnit(context);
    const folder = dirname(unitFile);
    // systemd leaves these folders behind when they are empty.
    await removeEmptyFolders(join(folder, 'default.target.wants'), 0);
    await removeEmptyFolders(folder, 1);
  }
  if (proxies.own.length > 0) {
    await stopProxies({}, context).catch(async (error: unknown) => {
      // If the configuration is gone, another `svc uninstall` has stopped the proxies meanwhile.
      if ((await readConfigFile(configFolder(environment))) !== undefined) throw error;
    });
  }
  const failed: string[] = [];
  for (const form of clientFiles) {
    if (!(await restore(form, context))) failed.push(form.path);
  }
  const data = dataFolder(environment);
  for (const contents of folders) {
    const isNeeded = failed.length > 0 && contents.folder === data;
    // Keep the backups until all clients' files are restored.
    const own = contents.own.filter((path) => !isNeeded || basename(path) !== 'client-files');
    await removeContents({ ...contents, own });
  }
  if (failed.length === 0) {
    terminal.note('svc is uninstalled. Remove the package with: npm uninstall -g svc-local-proxy');
    return 0;
  }
  terminal.error(`Not restored: ${failed.join(', ')}.`);
  terminal.note(
    `  Correct them as described above. The original copies are in ${join(data, 'client-files')}`,
  );
  return 1;
}

async function restore(form: ClientFileForm, { environment, terminal }: CommandContext) {
  try {
    await undoClientFile(form, dataFolder(environment));
    return true;
  } catch (error) {
    const records = await clientRecords(dataFolder(environment));
    // Another `svc uninstall` may have restored the file and removed its record meanwhile.
    if (!records.some(({ named }) => named === form.path)) return true;
    if (!(error instanceof CliError)) throw error;
    reportError(error, terminal);
    return false;
  }
}
