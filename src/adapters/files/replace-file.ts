import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { FILE_MODE } from './private-folder.ts';

const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;
// Windows does not know the flag.
const FLAGS = O_CREAT | O_EXCL | O_WRONLY | (O_NOFOLLOW ?? 0);

export interface Replacement {
  /** Path of the draft, in the same folder; beside the file by default. */
  readonly draft?: string;
  /** 0600 by default; set on the handle, so that the umask has no effect. */
  readonly mode?: number;
  /** False for what need not outlive a power cut, and must not wait for the disk. */
  readonly isSynced?: boolean;
}

/**
 * Puts this content in the file's place: private from birth, synced, whole or not at all. A link of
 * that name is replaced and not followed. Throws what the file system throws, and then the file is
 * what it was. That the name lasts is the caller's: syncFolder().
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array,
  { draft = `${path}.${randomBytes(8).toString('hex')}`, mode, isSynced = true }: Replacement = {},
): Promise<void> {
  try {
    const handle = await open(draft, FLAGS, FILE_MODE);
    try {
      await handle.writeFile(content);
      if (mode !== undefined) await handle.chmod(mode);
      if (isSynced) await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}
