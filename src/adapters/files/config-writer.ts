import { constants } from 'node:fs';
import { mkdtemp, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type ConfigFile, configPath, readConfigFile } from './config-file.ts';
import { codeOf, FileError, folderHint } from './file-error.ts';
import { withFileLock } from './file-lock.ts';
import { ensurePrivateFolder, FILE_MODE, isOwn, syncFolder } from './private-folder.ts';

/**
 * Writes the configuration file. The package `conf` serialises and writes it, but `conf` follows links, makes folders
 * that others can read, and does not sync the folder. So `conf` writes into a new folder inside the configuration's
 * folder. This module checks the result and renames it into place.
 */

type Value = Readonly<Record<string, unknown>>;

const STAGING = '.writing-';
const { O_RDONLY, O_NOFOLLOW } = constants;

/**
 * Replaces the file by the result of `change`, under a lock between processes. If `change` throws, nothing is written.
 * Throws FileError if the folder or the file cannot be used safely.
 */
export async function updateConfigFile(
  folder: string,
  change: (old: ConfigFile | undefined) => Value,
): Promise<void> {
  // Make the folder private before keys are written into it.
  await ensurePrivateFolder(folder);
  try {
    await withFileLock(join(folder, 'config.lock'), async () => {
      await removeStaged(folder);
      const value = change(await readConfigFile(folder));
      await writeThroughStaging(folder, value);
    });
  } catch (error) {
    throw explained(error, folder);
  }
}

async function writeThroughStaging(folder: string, value: Value): Promise<void> {
  // The folder is new and has mode 0700, so it contains no link.
  const staging = await mkdtemp(join(folder, STAGING));
  try {
    await writeWithConf(staging, value);
    await checkAndSync(join(staging, 'config.json'));
    await rename(join(staging, 'config.json'), configPath(folder));
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  await syncFolder(folder);
}

async function writeWithConf(staging: string, value: Value): Promise<void> {
  const { default: Conf } = await keepingSignals(() => import('conf'));
  const conf = new Conf<Record<string, unknown>>({
    cwd: staging,
    configName: 'config',
    configFileMode: FILE_MODE,
    accessPropertiesByDotNotation: false,
    serialize: (stored) => `${JSON.stringify(stored, undefined, 2)}\n`,
  });
  conf.store = { ...value };
}

/**
 * Loads `conf` and removes the signal listeners that its dependency `when-exit` adds. They catch and re-send every
 * signal, which would end `svc start` in the middle of its answers.
 */
async function keepingSignals<T>(load: () => Promise<T>): Promise<T> {
  const before = new Map(process.eventNames().map((name) => [name, process.rawListeners(name)]));
  const loaded = await load();
  for (const name of process.eventNames()) {
    const known = before.get(name) ?? [];
    for (const listener of process.rawListeners(name)) {
      if (!String(name).startsWith('SIG') || known.includes(listener)) continue;
      if (isListener(listener)) process.off(name, listener);
    }
  }
  return loaded;
}

function isListener(value: unknown): value is (...values: unknown[]) => void {
  return typeof value === 'function';
}

async function checkAndSync(path: string): Promise<void> {
  const handle = await open(path, O_RDONLY | (O_NOFOLLOW ?? 0));
  try {
    const stat = await handle.stat();
    const mode = stat.mode & 0o777;
    if (process.platform !== 'win32' && (mode !== FILE_MODE || !isOwn(stat.uid))) {
      throw new FileError(
        `The file system did not create ${path} with mode 0600.`,
        'Nothing was changed.',
      );
    }
    // If the variable SNAP is set, `conf` does not sync the file.
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Finds the temporary folders of killed and of running writers, which may contain keys. */
export async function findLeftovers(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.filter((one) => one.startsWith(STAGING)).map((name) => join(folder, name));
}

/** Waits for a running writer, and removes the temporary folders of killed ones. Returns the removed paths. */
export async function removeLeftovers(folder: string): Promise<readonly string[]> {
  if ((await findLeftovers(folder)).length === 0) return [];
  try {
    return await withFileLock(join(folder, 'config.lock'), () => removeStaged(folder));
  } catch (error) {
    throw explained(error, folder);
  }
}

/** Removes temporary folders. The caller holds the lock, so no process is writing into one. */
async function removeStaged(folder: string): Promise<readonly string[]> {
  const paths = await findLeftovers(folder);
  for (const path of paths) await rm(path, { recursive: true, force: true });
  return paths;
}

function explained(error: unknown, folder: string): unknown {
  const code = codeOf(error);
  if (error instanceof FileError || code === '') return error;
  return new FileError(`${folder} cannot be written (${code}).`, folderHint(code), {
    cause: error,
  });
}
