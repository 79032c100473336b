import { realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { kindOf, readBounded } from './bounded-read.ts';

/**
 * Finds the git repository of a folder by reading files. It never runs git: a repository may name
 * programs that git starts. A layout that is not exactly git's own is no repository here.
 */

export interface Repository {
  /** The top of the main working tree. */
  readonly root: string;
  /** The top of the working tree that the folder is in. */
  readonly top: string;
  /** Git's own folder of that working tree, which holds its HEAD. */
  readonly own: string;
  /** Its `.git`, which worktrees share. */
  readonly common: string;
  /** The address of `origin`; '' without one. */
  readonly origin: string;
}

/** Deeper folders than any real project has. */
const LEVELS_MAX = 40;
const POINTER_BYTES_MAX = 4096;
const CONFIG_BYTES_MAX = 256 * 1024;

export async function findRepository(folder: string): Promise<Repository | undefined> {
  const start = await realpath(folder).catch(() => undefined);
  if (start === undefined) return undefined;
  const home = await realpath(homedir()).catch(() => homedir());
  let at = start;
  for (let level = 0; level < LEVELS_MAX; level += 1) {
    // A repository of the whole home folder keeps settings: the projects inside it are not it.
    if (at === home && at !== start) return undefined;
    const kind = await kindOf(join(at, '.git'));
    if (kind !== 'none') return kind === 'foreign' ? undefined : repositoryAt(at, kind);
    const above = dirname(at);
    if (above === at) return undefined;
    at = above;
  }
  return undefined;
}

async function repositoryAt(top: string, kind: 'folder' | 'file'): Promise<Repository | undefined> {
  const own = kind === 'folder' ? join(top, '.git') : await folderOfWorktree(top);
  if (own === undefined) return undefined;
  const common = kind === 'folder' ? own : dirname(dirname(own));
  if (basename(common) !== '.git') return undefined;
  for (const name of ['objects', 'refs']) {
    if ((await kindOf(join(common, name))) !== 'folder') return undefined;
  }
  const config = await readBounded(join(common, 'config'), CONFIG_BYTES_MAX);
  return { root: dirname(common), top, own, common, origin: originIn(config) };
}

/**
 * A worktree's `.git` file counts only when git's own folder of that worktree lies in the
 * repository and points back to this very file. Anyone can write a `.git` file that names another
 * repository.
 */
async function folderOfWorktree(top: string): Promise<string | undefined> {
  const pointer = await readBounded(join(top, '.git'), POINTER_BYTES_MAX);
  const named = /^gitdir: ([^\n\0]+)/.exec(pointer)?.[1]?.trim();
  if (named === undefined) return undefined;
  const own = await realpath(resolve(top, named)).catch(() => undefined);
  if (own === undefined || basename(dirname(own)) !== 'worktrees') return undefined;
  if ((await kindOf(dirname(dirname(own)))) !== 'folder') return undefined;
  const back = (await readBounded(join(own, 'gitdir'), POINTER_BYTES_MAX)).trim();
  if (!isAbsolute(back)) return undefined;
  const pointed = await realpath(dirname(back)).catch(() => undefined);
  return pointed === top && basename(back) === '.git' ? own : undefined;
}

/** The first `url` of `[remote "origin"]`. Includes are not followed. */
function originIn(config: string): string {
  let isOrigin = false;
  for (const line of config.split('\n')) {
    const section = /^\s*\[([^\]]*)\]/.exec(line)?.[1];
    if (section !== undefined) isOrigin = /^remote\s+"origin"$/i.test(section.trim());
    const url = isOrigin ? /^\s*url\s*=\s*(.*?)\s*$/i.exec(line)?.[1] : undefined;
    if (url !== undefined) return url.replace(/^"(.*)"$/, '$1');
  }
  return '';
}
