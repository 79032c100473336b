import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { DRAFT } from './folder-purpose.ts';
import { FILE_MODE } from './private-folder.ts';

const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;
// Windows has no O_NOFOLLOW, so the constant is undefined there.
const FLAGS = O_CREAT | O_EXCL | O_WRONLY | (O_NOFOLLOW ?? 0);

export interface Replacement {
  /** Path of the temporary file, in the same folder; undefined: the file's path with a random ending. */
  readonly draft?: string;
  /** The mode of the new file; undefined means 0600. */
  readonly mode?: number;
  /** False: do not sync the file. A power cut may then lose it. */
  readonly isSynced?: boolean;
  /** Called when the temporary file is complete. If it throws, the file stays unchanged. */
  readonly beforeRename?: () => Promise<void>;
}

/** Age from which a temporary file is stale: no write takes so long, so its process was killed. */
const STALE_MS = 60_000;

/**
 * Replaces a file atomically: writes a private temporary file, syncs it, and renames it. A link at the path is replaced
 * and not followed. Throws errors of the file system; then the file is unchanged. After a power cut the old file may be
 * back, unless the caller then calls syncFolder().
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array,
  { draft, mode, isSynced = true, beforeRename }: Replacement = {},
): Promise<void> {
  if (draft === undefined) await removeStaleDrafts(path);
  const staged = draft ?? `${path}.${randomBytes(8).toString('hex')}`;
  try {
    const handle = await open(staged, FLAGS, FILE_MODE);
    try {
      await handle.writeFile(content);
      if (mode !== undefined) await handle.chmod(mode);
      if (isSynced) await handle.sync();
    } finally {
      await handle.close();
    }
    await beforeRename?.();
    await rename(staged, path);
  } catch (error) {
    await rm(staged, { force: true }).catch(() => undefined);
    throw error;
  }
}

async function removeStaleDrafts(path: string): Promise<void> {
  const folder = dirname(path);
  const isSuffix = new RegExp(`^${DRAFT}$`);
  const own = basename(path);
  for (const name of await readdir(folder).catch((): string[] => [])) {
    if (!name.startsWith(own) || !isSuffix.test(name.slice(own.length))) continue;
    const made = await lstat(join(folder, name)).catch(() => undefined);
    if (made?.isFile() !== true || Date.now() - made.mtimeMs < STALE_MS) continue;
    await rm(join(folder, name), { force: true }).catch(() => undefined);
  }
}
