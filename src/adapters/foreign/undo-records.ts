import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, FileError, folderHint } from '../files/file-error.ts';
import { withFileLock } from '../files/file-lock.ts';
import { ensurePrivateFolder, syncFolder } from '../files/private-folder.ts';
import { replaceFile } from '../files/replace-file.ts';

/**
 * Records in svc's data folder of its changes to other programs' files: how to undo the change, and
 * the file as it was before. Both are 0600: such files hold credentials.
 */
export class UndoRecords {
  readonly #folder: string;

  constructor(dataFolder: string) {
    this.#folder = join(dataFolder, 'client-files');
  }

  /** Where the file as it was before lies. */
  backupPath(name: string): string {
    return join(this.#folder, `${name}.before`);
  }

  /** One change at a time. Throws FileError when the folder cannot be used. */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    await ensurePrivateFolder(this.#folder, { inside: true });
    return withFileLock(join(this.#folder, 'write.lock'), work);
  }

  /** The parsed record; undefined when there is none, or it cannot be read. */
  async #read(name: string): Promise<unknown> {
    const text = await this.#readText(this.#recordPath(name));
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  /** Every record that can be read, with its name. */
  async all(): Promise<readonly (readonly [string, unknown])[]> {
    const files = (await readdir(this.#folder).catch((): string[] => [])).toSorted();
    const names = files
      .filter((file) => file.endsWith('.json'))
      .map((file) => file.slice(0, -'.json'.length));
    return Promise.all(names.map(async (name) => [name, await this.#read(name)] as const));
  }

  /** Undefined when there is none. */
  readBackup(name: string): Promise<string | undefined> {
    return this.#readText(this.backupPath(name));
  }

  /** The backup first: a record must never name one that is not there. */
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
