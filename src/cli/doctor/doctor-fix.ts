import { type LooseMode, readConfigFile, repairModes } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/config-folder.ts';
import { removeLeftovers } from '../../adapters/files/config-writer.ts';
import { looseDataFiles, tightenDataFiles } from '../../adapters/files/data-files.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { FileError } from '../../adapters/files/file-error.ts';
import { folderMode, isPrivate, tightenFolder } from '../../adapters/files/private-folder.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { CommandContext } from '../context.ts';
import { CliError } from '../cli-error.ts';
import { saveConfig } from '../setup/setup-save.ts';

/**
 * The repairs of `svc doctor --fix`: modes that are too open, leftovers of a killed writer, a
 * missing local token. Keys, ports, addresses and the files of clients are for the person to
 * decide.
 */
export async function fixAll(context: CommandContext): Promise<void> {
  await fixModes(context);
  await mendOrLeave(async () => {
    const folder = configFolder(context.environment);
    for (const path of await removeLeftovers(folder)) context.terminal.note(`Removed: ${path}`);
  });
  await mendOrLeave(() => addToken(context));
}

const ASKED = { asked: true };

/** To be called when the person has asked for it. */
export async function fixModes({ environment, terminal }: CommandContext): Promise<void> {
  const mended: string[] = [];
  await mendOrLeave(async () => {
    mended.push(...(await repairModes(configFolder(environment), ASKED)));
    const data = dataFolder(environment);
    if ((await folderMode(data)) === undefined) return;
    if (await tightenFolder(data, ASKED)) mended.push(data);
    mended.push(...(await tightenDataFiles(data)));
  });
  for (const path of mended) terminal.note(`Made private: ${path}`);
}

/** Folders and files of svc that others may read or write; one that cannot be read is left out. */
export async function looseModes(
  environment: CommandContext['environment'],
): Promise<readonly LooseMode[]> {
  const loose: LooseMode[] = [];
  await mendOrLeave(async () => {
    const config = await readConfigFile(configFolder(environment));
    loose.push(...(config?.looseModes ?? (await looseFolder(configFolder(environment)))));
    const path = dataFolder(environment);
    loose.push(...(await looseFolder(path)), ...(await looseDataFiles(path)));
  });
  return loose;
}

async function looseFolder(path: string): Promise<readonly LooseMode[]> {
  const mode = await folderMode(path);
  return mode === undefined || isPrivate(mode) ? [] : [{ path, mode }];
}

/** Only where there is none: a token that is wrong may be one that clients have. */
async function addToken(context: CommandContext): Promise<void> {
  const file = await readConfigFile(configFolder(context.environment));
  if (!isRecord(file?.value) || file.value['localToken'] !== undefined) return;
  await saveConfig({ upstreams: [], settings: {}, removed: [], replace: false }, context);
  context.terminal.note('Created a local token.');
}

// A link, a foreign folder, a broken file: the checks report it, with the remedy.
async function mendOrLeave(mend: () => Promise<void>): Promise<void> {
  try {
    await mend();
  } catch (error) {
    if (!(error instanceof FileError) && !(error instanceof CliError)) throw error;
  }
}
