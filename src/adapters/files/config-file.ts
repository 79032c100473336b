import type { BigIntStats } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { join } from 'node:path';
import { shellQuote } from '../../core/foreign/shell-quote.ts';
import type { FolderKind } from './folder-purpose.ts';
import { codeOf, FileError } from './file-error.ts';
import {
  FILE_MODE,
  folderMode,
  isOwn,
  isPrivate,
  tighten,
  tightenFolder,
  READ_FLAGS,
} from './private-folder.ts';

/**
 * Reads the configuration file. It refuses a link and another user's file, and reports modes that are too open. Error
 * messages never quote the file, because it contains keys.
 */

export interface ConfigFile {
  readonly path: string;
  /** The parsed JSON, not validated yet. */
  readonly value: unknown;
  /** Inode number, size and times of the file, at least one of which differs after a change of the file. */
  readonly stamp: string;
  /** The folder and the file, each only if other users have access to it, with its permission bits. */
  readonly looseModes: readonly LooseMode[];
}

export interface LooseMode {
  readonly path: string;
  readonly mode: number;
}

/** Bound on the file; a real configuration has a few kilobytes. */
const BYTES_MAX = 1024n * 1024n;

export function configPath(folder: string): string {
  return join(folder, 'config.json');
}

/** Reads the file; undefined if there is none. Throws FileError if svc must not use it, or cannot read it. */
export async function readConfigFile(folder: string): Promise<ConfigFile | undefined> {
  const mode = await folderMode(folder);
  if (mode === undefined) return undefined;
  const path = configPath(folder);
  const handle = await openConfig(path);
  if (handle === undefined) return undefined;
  try {
    const stat = await handle.stat({ bigint: true });
    if (stat.size > BYTES_MAX) {
      throw new FileError(
        `${path} is larger than 1 MiB.`,
        'This is not a configuration. Move it away.',
      );
    }
    const modes = [
      { path: folder, mode },
      { path, mode: Number(stat.mode) & 0o777 },
    ];
    return {
      path,
      value: parse(path, await handle.readFile()),
      stamp: stampOf(stat),
      looseModes: modes.filter((one) => !isPrivate(one.mode)),
    };
  } finally {
    await handle.close();
  }
}

/** Restricts the modes of the configuration's folder and file if they are too open. Returns the changed paths. */
export async function repairModes(folder: string, kind?: FolderKind): Promise<readonly string[]> {
  const repaired: string[] = [];
  if ((await folderMode(folder)) === undefined) return repaired;
  if (await tightenFolder(folder, kind)) repaired.push(folder);
  const path = configPath(folder);
  const handle = await openConfig(path);
  if (handle === undefined) return repaired;
  try {
    if (await tighten(handle, FILE_MODE)) repaired.push(path);
  } finally {
    await handle.close();
  }
  return repaired;
}

function stampOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}

async function openConfig(path: string): Promise<FileHandle | undefined> {
  const handle = await openNoFollow(path);
  if (handle === undefined) return undefined;
  const stat = await handle.stat();
  const wrong = stat.isFile() ? '' : `${path} is not a file.`;
  const foreign = isOwn(stat.uid) ? '' : `${path} belongs to another user.`;
  if (wrong === '' && foreign === '') return handle;
  await handle.close();
  throw new FileError(wrong || foreign, `Move it away, then run: svc setup`);
}

async function openNoFollow(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, READ_FLAGS);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT') return undefined;
    // The path is a link: Linux and macOS report ELOOP, FreeBSD EMLINK.
    if (code === 'ELOOP' || code === 'EMLINK') {
      throw new FileError(
        `${path} is a symbolic link, and svc stores no secrets behind links.`,
        `Replace it by the file itself: rm ${shellQuote(path, 'sh')}, then svc setup`,
        { cause: error },
      );
    }
    const hint = 'Make it readable only for you: mode 0600.';
    throw new FileError(`${path} cannot be read (${code || 'unknown error'}).`, hint, {
      cause: error,
    });
  }
}

function parse(path: string, bytes: Buffer): unknown {
  // TextDecoder removes a byte order mark, which some editors write.
  const text = new TextDecoder('utf-8').decode(bytes);
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's message quotes the file. Use only the position in it, and do not attach the error as the cause.
    const message = error instanceof Error ? error.message : '';
    const position = /at position (\d+)/.exec(message)?.[1];
    const where = position === undefined ? '' : `, near ${placeOf(text, Number(position))}`;
    throw new FileError(
      `${path} is not valid JSON${where}.`,
      'Correct it, or move it away and run: svc setup',
    );
  }
}

function placeOf(text: string, position: number): string {
  const before = text.slice(0, position).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}

/**
 * Interval of the polls. A change is reported when two polls in a row see the same stamp, so that a file which is being
 * written is not read. Unless the disk is slow, a change is reported within two intervals after the last write.
 */
const PERIOD_MS = 250;

/**
 * Watches the configuration file, and reports its changes and its removal. It polls the file's stamp: system events get
 * lost when a folder is replaced, on network disks, and when the system has run out of watches. `stamp`: the stamp with
 * which the caller has read the file, so that no change since then is missed. `onChange` must not throw.
 */
export function watchConfig(
  file: { readonly path: string; readonly stamp: string },
  onChange: () => void,
): { close(): void } {
  let reported = file.stamp;
  let previous = file.stamp;
  let isLooking = false;
  const look = async (): Promise<void> => {
    const now = await lstat(file.path, { bigint: true }).then(stampOf, () => '');
    const isSettled = now === previous;
    previous = now;
    if (!isSettled || now === reported) return;
    reported = now;
    onChange();
  };
  const timer = setInterval(() => {
    // Skip this poll while an earlier one waits for a slow disk.
    if (isLooking) return;
    isLooking = true;
    void look().finally(() => {
      isLooking = false;
    });
  }, PERIOD_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}
