import { realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { kindOf, readBounded } from './bounded-read.ts';

/**
 * Finds the git repository of a folder by reading files. It never runs git, because a repository's configuration may
 * name programs that git starts. A folder whose layout is not exactly git's counts as no repository.
 */

export interface Repository {
  /** The top folder of the main working tree, or the folder of a repository without one. */
  readonly root: string;
  /** The top folder of the working tree that contains the folder. */
  readonly top: string;
  /** Git's folder for the working tree `top`, which contains its HEAD. */
  readonly own: string;
  /** Git's folder of the repository, which all its worktrees share: `.git`, a bare repository, or a submodule's. */
  readonly common: string;
  /** The address of the remote `origin`; '' if there is none. */
  readonly origin: string;
}

/** Bound on the folders above that are searched: more levels than any real project has. */
const LEVELS_MAX = 40;
const POINTER_BYTES_MAX = 4096;
const CONFIG_BYTES_MAX = 256 * 1024;

export async function findRepository(folder: string): Promise<Repository | undefined> {
  const start = await realpath(folder).catch(() => undefined);
  if (start === undefined) return undefined;
  const home = await realpath(homedir()).catch(() => homedir());
  let bare: string | undefined;
  let at = start;
  for (let level = 0; level < LEVELS_MAX; level += 1) {
    // A repository in the home folder itself contains settings. Projects in subfolders do not belong to it.
    if (at === home && at !== start) break;
    const kind = await kindOf(join(at, '.git'));
    if (kind === 'foreign') return undefined;
    // Search upwards even from a bare repository: it may be part of a working tree, whose repository then counts.
    const tree = kind === 'none' ? undefined : await repositoryAt(at, kind);
    if (tree !== undefined) return tree;
    if (kind !== 'none') break;
    if ((await kindOf(join(at, 'HEAD'))) === 'file') bare ??= at;
    const above = dirname(at);
    if (above === at) break;
    at = above;
  }
  return bare === undefined ? undefined : bareAt(bare);
}

/** Reads a bare repository, which has no working tree of its own; undefined if the folder is none. */
async function bareAt(common: string): Promise<Repository | undefined> {
  const config = await gitConfigIn(common);
  if (config === undefined || settingIn(config, CORE, 'bare') !== 'true') return undefined;
  const origin = settingIn(config, ORIGIN, 'url');
  return { root: common, top: common, own: common, common, origin };
}

/** Returns the text of the configuration in one of git's folders; undefined if the folder is not git's. */
async function gitConfigIn(common: string): Promise<string | undefined> {
  for (const name of ['objects', 'refs']) {
    if ((await kindOf(join(common, name))) !== 'folder') return undefined;
  }
  return readBounded(join(common, 'config'), CONFIG_BYTES_MAX);
}

async function repositoryAt(top: string, kind: 'folder' | 'file'): Promise<Repository | undefined> {
  const own = kind === 'folder' ? join(top, '.git') : await namedFolder(top);
  if (own === undefined) return undefined;
  const isTree = kind === 'file' && (await isWorktree(own, top));
  const common = isTree ? dirname(dirname(own)) : own;
  const config = await gitConfigIn(common);
  if (config === undefined) return undefined;
  const main = kind === 'folder' ? top : await mainTreeOf(common, config);
  // Anyone can write a `.git` file that names another repository. So that repository must name this folder too.
  if (kind === 'file' && !isTree && main !== top) return undefined;
  return { root: main ?? common, top, own, common, origin: settingIn(config, ORIGIN, 'url') };
}

/** Returns the folder that a `.git` file names; undefined if there is none. */
async function namedFolder(top: string): Promise<string | undefined> {
  const pointer = await readBounded(join(top, '.git'), POINTER_BYTES_MAX);
  const named = /^gitdir: ([^\n\0]+)/.exec(pointer)?.[1]?.trim();
  return named === undefined ? undefined : realpath(resolve(top, named)).catch(() => undefined);
}

/** Says whether `own` is git's folder of a linked worktree, and names the `.git` file of `top`. */
async function isWorktree(own: string, top: string): Promise<boolean> {
  if (basename(dirname(own)) !== 'worktrees') return false;
  if ((await kindOf(dirname(dirname(own)))) !== 'folder') return false;
  // The path may be relative to `own`, from git 2.48 on (`worktree.useRelativePaths`).
  const back = resolve(own, (await readBounded(join(own, 'gitdir'), POINTER_BYTES_MAX)).trim());
  const pointed = await realpath(dirname(back)).catch(() => undefined);
  return pointed === top && basename(back) === '.git';
}

/**
 * Returns the main working tree of a repository: the one that its configuration names, as in a submodule, or else the
 * parent of git's folder. Undefined for a repository without one.
 */
async function mainTreeOf(common: string, config: string): Promise<string | undefined> {
  const stated = resolve(common, settingIn(config, CORE, 'worktree') || '..');
  const tree = await realpath(stated).catch(() => undefined);
  if (tree === undefined) return undefined;
  const git = join(tree, '.git');
  return (git === common ? common : await namedFolder(tree)) === common ? tree : undefined;
}

const CORE = /^core$/i;
const ORIGIN = /^remote\s+"origin"$/i;

/** Returns the first setting of this name in a section; '' if there is none. It does not read included files. */
function settingIn(config: string, section: RegExp, name: string): string {
  const setting = new RegExp(String.raw`^\s*${name}\s*=\s*(.*?)\s*$`, 'i');
  let isInside = false;
  for (const line of config.split('\n')) {
    const header = /^\s*\[([^\]]*)\]/.exec(line)?.[1];
    if (header !== undefined) isInside = section.test(header.trim());
    const value = isInside ? setting.exec(line)?.[1] : undefined;
    if (value !== undefined) return value.replace(/^"(.*)"$/, '$1');
  }
  return '';
}

interface Head {
  /** The branch; undefined if HEAD is detached or names none. */
  readonly branch: string | undefined;
  /** The commit; '' if the branch has none yet. */
  readonly commit: string;
}

const REF_BYTES_MAX = 1024;
const PACKED_BYTES_MAX = 256 * 1024;
export const COMMIT_HASH = /\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b/g;
const REF = /^ref: (refs\/[^\s\p{Cc}\p{Cf}<>]{1,250})\s*$/u;
const BRANCHES = 'refs/heads/';

export async function readHead({ own, common }: Pick<Repository, 'own' | 'common'>): Promise<Head> {
  const head = await readBounded(join(own, 'HEAD'), REF_BYTES_MAX);
  const ref = REF.exec(head)?.[1];
  if (ref === undefined) return { branch: undefined, commit: firstHash(head) };
  if (ref.includes('..')) return { branch: undefined, commit: '' };
  const branch = ref.startsWith(BRANCHES) ? ref.slice(BRANCHES.length) : undefined;
  const loose = await hashIn(join(common, ref));
  return { branch, commit: loose === '' ? await packedHash(common, ref) : loose };
}

export async function hashIn(path: string): Promise<string> {
  return firstHash(await readBounded(path, REF_BYTES_MAX));
}

export function readPacked(common: string): Promise<string> {
  return readBounded(join(common, 'packed-refs'), PACKED_BYTES_MAX);
}

async function packedHash(common: string, ref: string): Promise<string> {
  const packed = await readPacked(common);
  return firstHash(packed.split('\n').find((line) => line.endsWith(` ${ref}`)) ?? '');
}

function firstHash(text: string): string {
  return text.match(COMMIT_HASH)?.[0] ?? '';
}
