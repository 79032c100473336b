import { lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf, FileError, succeeds } from './file-error.ts';
import { isOwn } from './private-folder.ts';

/** Finds and removes the files that svc made in one of its folders, for `svc uninstall`. It never follows a link. */

export interface FolderContents {
  readonly folder: string;
  /** The number of parent folders that svc may have made. */
  readonly parents: number;
  /** Entries that svc made, as full paths. */
  readonly own: readonly string[];
  /** Entries that stay, as full paths: OwnFolder.kept matches them, or svc did not make them. */
  readonly others: readonly string[];
}

export interface OwnFolder {
  readonly folder: string;
  /** True if the folder has svc's own name at its usual place, so everything in it belongs to svc. */
  readonly isStandard: boolean;
  /** The number of parent folders that svc may have made, such as `.local` and `share`. */
  readonly parents: number;
  /** Matches names that svc makes in a folder that is not its own. */
  readonly ownNames: RegExp;
  /** Matches names of entries that stay although svc made them. */
  readonly kept?: RegExp;
}

/**
 * Lists a folder; undefined if it is missing. Throws FileError for anything that is no folder of this user, such as a
 * link.
 */
export async function contentsOf(asked: OwnFolder): Promise<FolderContents | undefined> {
  const { folder, kept } = asked;
  const stat = await lstat(folder).catch(() => undefined);
  if (stat === undefined) return undefined;
  if (!stat.isDirectory() || !isOwn(stat.uid)) {
    throw new FileError(
      `${folder} is a link or a folder of another user, so svc removes nothing there.`,
      'Check it, and remove it yourself.',
    );
  }
  const isRemoved = (name: string): boolean =>
    (asked.isStandard || asked.ownNames.test(name)) && kept?.test(name) !== true;
  const names = (await readdir(folder).catch(noneIfGone)).toSorted();
  const pathsOf = (chosen: readonly string[]) => chosen.map((name) => join(folder, name));
  return {
    folder,
    parents: asked.isStandard ? asked.parents : 0,
    own: pathsOf(names.filter(isRemoved)),
    others: pathsOf(names.filter((name) => !isRemoved(name))),
  };
}

function noneIfGone(error: unknown): string[] {
  if (codeOf(error) === 'ENOENT') return [];
  throw error;
}

/** Retries, because another process may put a file into a folder, or remove one, while this one empties it. */
const REMOVED = { recursive: true, force: true, maxRetries: 3 } as const;

/** Removes svc's own entries, and then the folder and `parents` folders above it, as far as they are empty. */
export async function removeContents({ folder, own, parents }: FolderContents): Promise<void> {
  for (const path of own) {
    await rm(path, REMOVED).catch((cause: unknown) => {
      const what = `${path} cannot be removed (${codeOf(cause) || 'unknown error'}).`;
      throw new FileError(what, 'Remove it yourself.', { cause });
    });
  }
  await removeEmptyFolders(folder, parents);
}

/** Removes the folder and up to `parents` folders above it, until one is not empty. */
export async function removeEmptyFolders(folder: string, parents: number): Promise<void> {
  const isGone = await succeeds(rmdir(folder));
  if (isGone && parents > 0) await removeEmptyFolders(dirname(folder), parents - 1);
}
