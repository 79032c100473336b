import { createHash, randomBytes } from 'node:crypto';
import { lstat, mkdir, open, realpath, rm, rmdir, readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf, FileError, folderHint, succeeds } from '../files/file-error.ts';
import { parseJson } from '../../core/bytes/json-fields.ts';
import { isOwn, READ_FLAGS, syncFolder, ensurePrivateFolder } from '../files/private-folder.ts';
import { replaceFile } from '../files/replace-file.ts';
import { withFileLock } from '../files/file-lock.ts';

/**
 * A configuration file of another program in the user's home. svc replaces it atomically, and keeps its mode. If the
 * path is a symbolic link, svc replaces the file to which it leads.
 */
export interface ForeignFile {
  /** The path of the file itself, after following all links. */
  readonly path: string;
  /** The file's exact text without a byte order mark; undefined if there is no file. */
  readonly text: string | undefined;
  /** True if the file begins with a byte order mark. */
  readonly hasMark: boolean;
  readonly mode: number;
  /** The topmost folder of the path that does not exist; undefined if all exist. */
  readonly missingFolder: string | undefined;
}

/** Largest file that is read. Settings of users have kilobytes. */
const BYTES_MAX = 4 * 1024 * 1024;
/** The byte order mark, which some editors write. */
const MARK = '\ufeff';
/** Mode of a new file. Such files contain credentials. */
const NEW_FILE_MODE = 0o600;

/** Reads a file. Throws FileError if it is not a regular file of this user with UTF-8 text, or is too large. */
export async function readForeignFile(named: string): Promise<ForeignFile> {
  const path = await targetOf(named);
  if (path === undefined) {
    const folder = dirname(named);
    const missingFolder = await missingFolderOf(folder);
    const real = missingFolder === undefined ? await realpath(folder) : folder;
    const at = join(real, basename(named));
    return { path: at, text: undefined, hasMark: false, mode: NEW_FILE_MODE, missingFolder };
  }
  const handle = await open(path, READ_FLAGS).catch((cause: unknown) => {
    const hint = 'Make it readable for you.';
    throw new FileError(`${path} cannot be read (${codeOf(cause)}).`, hint, { cause });
  });
  try {
    const stat = await handle.stat();
    if (!stat.isFile() || !isOwn(stat.uid)) {
      throw new FileError(`${path} is not a regular file that you own.`, 'Edit it as its owner.');
    }
    if (stat.size > BYTES_MAX) {
      throw new FileError(
        `${path} is larger than 4 MiB.`,
        'Check it: this is not a settings file.',
      );
    }
    const text = decode(path, await handle.readFile());
    const hasMark = text.startsWith(MARK);
    const mode = stat.mode & 0o777;
    return { path, text: hasMark ? text.slice(1) : text, hasMark, mode, missingFolder: undefined };
  } finally {
    await handle.close();
  }
}

/**
 * Replaces the file's text and keeps its mode. Throws FileError for every error, and if another program has changed the
 * file since it was read; then nothing is changed.
 */
export async function replaceForeignFile(file: ForeignFile, text: string): Promise<void> {
  const folder = dirname(file.path);
  const draft = join(folder, `.svc-${randomBytes(8).toString('hex')}.tmp`);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const content = file.hasMark ? MARK + text : text;
    await replaceFile(file.path, content, {
      draft,
      mode: file.mode,
      beforeRename: () => checkUnchanged(file),
    });
  } catch (error) {
    throw notWritten(file.path, error);
  }
  // The file is replaced already. Ignore a failed sync of its folder.
  await syncFolder(folder).catch(() => undefined);
}

/** Removes a file that svc made. `madeFolder`: the topmost folder that was made for it; removed too if it is empty. */
export async function removeForeignFile(
  file: ForeignFile,
  madeFolder: string | undefined,
): Promise<void> {
  const { path } = file;
  await checkUnchanged(file);
  await rm(path).catch((error: unknown) => {
    throw notWritten(path, error);
  });
  if (madeFolder === undefined) return;
  for (let folder = dirname(path); folder.startsWith(madeFolder); folder = dirname(folder)) {
    if (!(await succeeds(rmdir(folder)))) return;
  }
}

export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function checkUnchanged({ path, text }: ForeignFile): Promise<void> {
  const now = await readForeignFile(path);
  if (now.text === text) return;
  throw new FileError(`${path} was changed meanwhile.`, 'Nothing was changed. Try again.');
}

function notWritten(path: string, cause: unknown): FileError {
  if (cause instanceof FileError) return cause;
  const code = codeOf(cause) || 'unknown error';
  const hint = 'Nothing was changed. Make the file and its folder writable for you.';
  return new FileError(`${path} cannot be written (${code}).`, hint, { cause });
}

/** Returns the path of a file after following all links; undefined if there is no file. Throws for a broken link. */
async function targetOf(named: string): Promise<string | undefined> {
  try {
    return await realpath(named);
  } catch (cause) {
    const isLink = await lstat(named).then(
      (stat) => stat.isSymbolicLink(),
      () => false,
    );
    if (!isLink && codeOf(cause) === 'ENOENT') return undefined;
    const what = isLink ? 'is a broken link' : `cannot be reached (${codeOf(cause)})`;
    throw new FileError(`${named} ${what}.`, 'Check it: svc does not change such a file.', {
      cause,
    });
  }
}

async function missingFolderOf(folder: string): Promise<string | undefined> {
  let missing: string | undefined;
  let at = folder;
  while (!(await succeeds(lstat(at))) && dirname(at) !== at) {
    missing = at;
    at = dirname(at);
  }
  return missing;
}

function decode(path: string, bytes: Buffer): string {
  try {
    // Keep a byte order mark in the text (ignoreBOM), so that readForeignFile() can find it.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new FileError(`${path} is not UTF-8 text.`, 'Save it as UTF-8 first.', { cause });
  }
}

/**
 * Stores in the data folder how to undo svc's changes to other programs' files: for each file a record of the changes,
 * and a backup of its earlier text. Both have mode 0600, because such files contain credentials.
 */
export class UndoRecords {
  readonly #folder: string;

  constructor(dataFolder: string) {
    this.#folder = join(dataFolder, 'client-files');
  }

  /** Returns the path of the backup of a file's text before svc changed it. */
  backupPath(name: string): string {
    return join(this.#folder, `${name}.before`);
  }

  /** Runs `work` under a lock between processes. Throws FileError if the folder cannot be used. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    await ensurePrivateFolder(this.#folder, { inside: true });
    return withFileLock(join(this.#folder, 'write.lock'), work);
  }

  /** Returns the name of each record with the parsed record; undefined for one that is missing or no JSON. */
  async all(): Promise<readonly (readonly [string, unknown])[]> {
    const files = (await readdir(this.#folder).catch((): string[] => [])).toSorted();
    const records = files
      .filter((file) => file.endsWith('.json'))
      .map(async (file) => {
        const text = await this.#readText(join(this.#folder, file));
        return [basename(file, '.json'), parseJson(text ?? '')] as const;
      });
    return Promise.all(records);
  }

  /** Returns the file's text before the change; undefined if there is no backup. */
  readBackup(name: string): Promise<string | undefined> {
    return this.#readText(this.backupPath(name));
  }

  /** Writes the backup, if `before` is given, and then the record, which must never name a missing backup. */
  async write(name: string, record: unknown, before: string | undefined): Promise<void> {
    if (before !== undefined) await this.#replace(this.backupPath(name), before);
    await this.#replace(this.#recordPath(name), JSON.stringify(record));
  }

  async remove(name: string): Promise<void> {
    await rm(this.#recordPath(name), { force: true });
    await rm(this.backupPath(name), { force: true });
  }

  #recordPath(name: string): string {
    return join(this.#folder, `${name}.json`);
  }

  async #readText(path: string): Promise<string | undefined> {
    try {
      return await readFile(path, 'utf8');
    } catch (cause) {
      if (codeOf(cause) === 'ENOENT') return undefined;
      const hint = 'Make it readable for you.';
      throw new FileError(`${path} cannot be read (${codeOf(cause)}).`, hint, { cause });
    }
  }

  async #replace(path: string, text: string): Promise<void> {
    try {
      await replaceFile(path, text);
      await syncFolder(this.#folder);
    } catch (cause) {
      const code = codeOf(cause) || 'unknown error';
      throw new FileError(`${path} cannot be written (${code}).`, folderHint(code), { cause });
    }
  }
}
