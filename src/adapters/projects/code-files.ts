import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { type FileHandle, lstat, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { Recent } from '../../core/bytes/recent.ts';
import { maskSecrets } from '../../core/redaction/redaction.ts';
import type { FileVerdict } from '../../core/memory/outgrown.ts';
import {
  type Code,
  type CodeNow,
  type Workplace,
  type ConcernedFile,
  FILES_MAX,
  type FileState,
  PATH_CHARS_MAX,
} from '../../ports/provenance.ts';
import { within } from '../within.ts';
import { codeOf } from '../files/file-error.ts';
import { bytesAt, withFile } from './bounded-read.ts';
import { readHead, findRepository } from './repository.ts';

/**
 * Reads the present state of a project's files. It calls `lstat` for each part of a path, so that it follows no link,
 * and hashes the content only if size, time and inode number do not show whether the file has changed.
 */

/** Bound on the file names of an exchange that are checked. An exchange with more names is about the whole project. */
const NAMES_MAX = 256;
/** Largest file that is hashed whole. Of a larger one the size, the beginning and the end are hashed. */
const HASHED_BYTES_MAX = 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
/** Length of a hash in base64 characters: 132 bits. */
const HASH_CHARS = 22;
/** Concurrent reads: two of the four threads with which Node reads files, so that a hanging disk does not block all. */
const AT_ONCE = 2;
/** Deadline of look(). No request waits for it. */
const LOOK_MS = 5_000;
/** Pause of compare() after it was late; doubled while it stays late, up to REST_MS_MAX. */
const REST_MS = 5_000;
const REST_MS_MAX = 600_000;
/** Bound on cached file states, some 200 bytes each. */
const KNOWN_MAX = 4_096;
/**
 * Age below which a file's modification time is not stored, so that only its hash counts. The clocks of file systems
 * tick every 4 to 10 ms, so a second write shortly after the first may leave the time as it is.
 */
const SAME_TICK_MS = 100;
/** Replaces a modification time that is not stored; see SAME_TICK_MS. No file has this time. */
const NO_TIME = -1;

export class CodeFiles implements Code {
  /** The last hashed state of each file, by its absolute path. */
  readonly #known = new Recent<string, FileState>(KNOWN_MAX);
  /** The number of reads that have exceeded their deadline and still run. While there is one, no other begins. */
  #late = 0;
  readonly #firstRestMs: number;
  #restMs: number;
  #restsUntil = -Infinity;

  constructor({ restMs = REST_MS }: { readonly restMs?: number } = {}) {
    this.#firstRestMs = restMs;
    this.#restMs = restMs;
  }

  async look(place: Workplace, names: readonly string[]): Promise<CodeNow | undefined> {
    return this.#within(LOOK_MS, async (isLate) => {
      const paths = await pathsIn(place, names.slice(0, NAMES_MAX));
      const repository = await findRepository(place.root);
      const commit = repository === undefined ? '' : (await readHead(repository)).commit;
      const folders = new Folders(place.root);
      const files: ConcernedFile[] = [];
      for (const path of paths) {
        if (isLate() || files.length === FILES_MAX) break;
        // oxlint-disable-next-line no-await-in-loop -- No request waits for this.
        const stat = await folders.lstat(path);
        if (typeof stat === 'string' || !stat.isFile()) continue;
        // oxlint-disable-next-line no-await-in-loop
        const state = await this.#stateOf(join(place.root, path), stat);
        if (state !== undefined) files.push({ path, ...state });
      }
      return { commit, files };
    });
  }

  async compare(
    root: string,
    files: readonly ConcernedFile[],
    withinMs: number,
  ): Promise<readonly FileVerdict[]> {
    const verdicts: FileVerdict[] = files.map(() => 'unknown');
    if (performance.now() < this.#restsUntil) return verdicts;
    const waiting = files.entries();
    const isInTime = await this.#within(withinMs, async (isLate) => {
      const folders = new Folders(root);
      // If the project's folder itself is missing, its files are not gone but unknown.
      if (!(await folders.isFolder(''))) return true;
      const work = async (): Promise<void> => {
        for (const [at, file] of waiting) {
          if (isLate()) return;
          // oxlint-disable-next-line no-await-in-loop -- Each worker takes the next file.
          verdicts[at] = await this.#verdictOn(folders, file);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      return true;
    });
    this.#rest(isInTime === true);
    return [...verdicts];
  }

  /** Begins a pause if compare() was late, each time twice as long; otherwise resets the length of the pause. */
  #rest(isInTime: boolean): void {
    if (!isInTime) this.#restsUntil = performance.now() + this.#restMs;
    this.#restMs = isInTime ? this.#firstRestMs : Math.min(REST_MS_MAX, 2 * this.#restMs);
  }

  /**
   * Compares a file with its earlier state. It hashes the file only if the size is the same, and the time or the inode
   * number differs.
   */
  async #verdictOn(folders: Folders, file: ConcernedFile): Promise<FileVerdict> {
    if (!isInside(file.path.split('/'))) return 'unknown';
    const stat = await folders.lstat(file.path);
    if (stat === 'unknown') return stat;
    if (stat === 'none' || !stat.isFile()) return 'gone';
    if (stat.size !== file.size) return 'changed';
    if (isSameStat(file, stat)) return 'same';
    const state = await this.#stateOf(join(folders.root, file.path), stat);
    if (state === undefined) return 'unknown';
    return state.hash === file.hash ? 'same' : 'changed';
  }

  /** Returns a file's present state; undefined if the file cannot be read or changes meanwhile. */
  async #stateOf(whole: string, stat: Stats): Promise<FileState | undefined> {
    const known = this.#known.get(whole);
    if (known !== undefined && isSameStat(known, stat)) return known;
    const hash = await withFile(whole, (file, opened) =>
      isSameStat(stateOf(opened, ''), stat) ? hashOf(file, opened) : Promise.resolve(''),
    );
    if (hash === undefined || hash === '') return undefined;
    const isSettled = Math.abs(Date.now() - stat.mtimeMs) > SAME_TICK_MS;
    const state = { ...stateOf(stat, hash), ...(!isSettled && { modifiedMs: NO_TIME }) };
    this.#known.set(whole, state);
    return state;
  }

  /**
   * Runs work with a deadline. Returns undefined if it is late or fails, or while earlier late work still runs. Late
   * work ends when it next calls `isLate`.
   */
  async #within<T>(ms: number, work: (isLate: () => boolean) => Promise<T>) {
    if (this.#late > 0) return undefined;
    let isLate = false;
    const running = work(() => isLate).catch(() => undefined);
    const first = await within(
      ms,
      running.then((value) => ({ value })),
    );
    if (first !== undefined) return first.value;
    isLate = true;
    this.#late += 1;
    void running.finally(() => {
      this.#late -= 1;
    });
    return undefined;
  }
}

/** Calls `lstat` on paths below a root, without following a link. It caches what it has found about folders. */
class Folders {
  readonly root: string;
  readonly #folders = new Map<string, Promise<boolean | 'unknown'>>();

  constructor(root: string) {
    this.root = root;
  }

  async lstat(path: string): Promise<Stats | 'none' | 'unknown'> {
    const parts = path.split('/');
    for (let depth = 0; depth < parts.length; depth += 1) {
      // oxlint-disable-next-line no-await-in-loop -- From the top down, until one is a link.
      const isFolder = await this.isFolder(parts.slice(0, depth).join('/'));
      if (isFolder !== true) return isFolder === false ? 'none' : isFolder;
    }
    return statOf(join(this.root, path));
  }

  /** Says whether a folder exists; 'unknown' if it cannot be examined. `folder` is relative to the root (''). */
  isFolder(folder: string): Promise<boolean | 'unknown'> {
    const known = this.#folders.get(folder);
    if (known !== undefined) return known;
    const asked = statOf(join(this.root, folder)).then((stat) =>
      typeof stat === 'string' ? (stat === 'none' ? false : stat) : stat.isDirectory(),
    );
    this.#folders.set(folder, asked);
    return asked;
  }
}

async function statOf(path: string): Promise<Stats | 'none' | 'unknown'> {
  try {
    return await lstat(path);
  } catch (error) {
    const code = codeOf(error);
    return code === 'ENOENT' || code === 'ENOTDIR' ? 'none' : 'unknown';
  }
}

function stateOf({ size, mtimeMs, ino }: Stats, hash: string): FileState {
  return { size, modifiedMs: mtimeMs, inode: ino, hash };
}

function isSameStat({ size, modifiedMs, inode }: FileState, stat: Stats): boolean {
  return size === stat.size && modifiedMs === stat.mtimeMs && inode === stat.ino;
}

/** Returns the hash of a file; '' if the file changed meanwhile. */
async function hashOf(file: FileHandle, before: Stats): Promise<string> {
  const { size } = before;
  const hash = createHash('sha256').update(`${size}\n`);
  const part = size > HASHED_BYTES_MAX ? HASHED_BYTES_MAX / 2 : size;
  await hashRange(file, hash, { start: 0, end: part });
  if (part < size) await hashRange(file, hash, { start: size - part, end: size });
  const isSame = isSameStat(stateOf(before, ''), await file.stat());
  return isSame ? hash.digest('base64url').slice(0, HASH_CHARS) : '';
}

async function hashRange(
  file: FileHandle,
  hash: ReturnType<typeof createHash>,
  { start, end }: { readonly start: number; readonly end: number },
): Promise<void> {
  for (let at = start; at < end; at += CHUNK_BYTES) {
    // oxlint-disable-next-line no-await-in-loop -- In small chunks, so that other work runs in between.
    hash.update(await bytesAt(file, at, Math.min(CHUNK_BYTES, end - at)));
  }
}

/**
 * Resolves file names to paths relative to the root. Leaves out names outside the root, names that may not be stored,
 * and repetitions.
 */
async function pathsIn(
  { folder, root }: Workplace,
  names: readonly string[],
): Promise<readonly string[]> {
  const real = await realpath(folder);
  const paths = names.flatMap((name) => {
    if (!isPlainName(name)) return [];
    const bases = isAbsolute(name) ? [folder, real, root] : [real];
    for (const base of bases) {
      const inside = relative(base, isAbsolute(name) ? name : join(base, name));
      const path = relative(root, join(base === folder ? real : base, inside));
      const parts = path.split(sep);
      if (isInside(parts) && !isAbsolute(path)) return [parts.join('/')];
    }
    return [];
  });
  return [...new Set(paths)];
}

function isInside(parts: readonly string[]): boolean {
  return parts.every((part) => part !== '' && part !== '..' && part !== '.git');
}

/**
 * Says whether a name may be stored: it is not empty and not too long, and it has no secret and no control or invisible
 * characters, which could fake a line of a list.
 */
function isPlainName(name: string): boolean {
  if (name === '' || name.length > PATH_CHARS_MAX || /[\p{Cc}\p{Cf}\p{Cs}]/u.test(name))
    return false;
  try {
    return maskSecrets(name).masked === 0;
  } catch {
    return false;
  }
}
