import type { Stats } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { isOwn, READ_FLAGS } from '../files/private-folder.ts';

/**
 * Reads files of a repository that a stranger may have made. It follows no link at the end of a path, reads from no
 * device, and bounds sizes.
 */

/**
 * Reads a file as text, to which it adds a line end. If the file is longer than `bytesMax`, returns only its beginning,
 * a line end and its end, each of half that length. Returns '' if there is no regular file that can be read.
 */
export async function readBounded(path: string, bytesMax: number): Promise<string> {
  return (
    (await withFile(path, async (file, { size }) => {
      const half = size > bytesMax ? bytesMax >> 1 : size;
      const head = await bytesAt(file, 0, half);
      const tail = size > bytesMax ? await bytesAt(file, size - half, half) : Buffer.alloc(0);
      return `${head.toString('utf8')}\n${tail.toString('utf8')}`;
    })) ?? ''
  );
}

/** Runs `use` with a regular file. Returns undefined if there is none that can be opened, or if `use` rejects. */
export async function withFile<T>(
  path: string,
  use: (file: FileHandle, stat: Stats) => Promise<T>,
): Promise<T | undefined> {
  const file = await open(path, READ_FLAGS).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const stat = await file.stat();
    return stat.isFile() ? await use(file, stat) : undefined;
  } catch {
    return undefined;
  } finally {
    await file.close().catch(() => undefined);
  }
}

export async function bytesAt(file: FileHandle, start: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, start);
  return bytes.subarray(0, bytesRead);
}

export type Kind = 'folder' | 'file' | 'none' | 'foreign';

/** Returns what is at a path. 'foreign': a link, a device, or another user's file or folder. */
export async function kindOf(path: string): Promise<Kind> {
  const stat = await lstat(path).catch(() => undefined);
  if (stat === undefined) return 'none';
  if (!isOwn(stat.uid) || stat.isSymbolicLink()) return 'foreign';
  if (stat.isDirectory()) return 'folder';
  return stat.isFile() ? 'file' : 'foreign';
}
