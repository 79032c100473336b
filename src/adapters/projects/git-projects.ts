import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { realpath, stat, readdir } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { Recent } from '../../core/bytes/recent.ts';
import { folderSpace } from '../../core/request/space.ts';
import type { Place, Project, Projects } from '../../ports/projects.ts';
import { within } from '../within.ts';
import {
  readHead,
  COMMIT_HASH,
  hashIn,
  readPacked,
  findRepository,
  type Repository,
} from './repository.ts';
import {
  changeRegistry,
  formerSpaces,
  isMemoryOff,
  type KnownProject,
  readRegistry,
  type Registry,
  REGISTRY_FILE,
  spaceNow,
} from './registry.ts';
import { bytesAt, kindOf, readBounded, withFile } from './bounded-read.ts';

/**
 * Finds projects by their git repositories, so that subfolders, worktrees, clones and renamed folders share one space.
 * The address of `origin` alone proves nothing, because anyone can copy it. A folder joins a known project only if its
 * repository has a commit that svc has seen in this project, or if the user has assigned the folder to it.
 */

/**
 * Deadline of finding a project, which takes milliseconds on a local disk and up to a second on a busy machine. After
 * the deadline svc uses the folder's own space for some seconds. If the project has another space, requests in that
 * time recall nothing of the project. What they store stays in the folder's space, which later recalls search as an
 * older space. A disk that does not answer usually delays only the first request of a folder.
 */
const FIND_MS = 2_000;
/**
 * Deadline of listing subfolders: a local disk lists 256 in 10 ms, and a late list counts for later requests. Also the
 * deadline of reading the registry once FIND_MS is over.
 */
const BELOW_MS = 100;
/** Age from which a cached project is checked again, in the background. */
const RECHECK_MS = 3_000;
const FOLDERS_MAX = 1_000;

interface Cached {
  readonly project: Project;
  /** Times and sizes of the files that decide the project; see stampOf. */
  readonly stamp: string;
  /** Time and size of the registry, which a command may change. */
  readonly registry: string;
  checkedAt: number;
}

interface GitProjectsOptions {
  /** True: found projects are not recorded in the registry. */
  readonly isReadOnly?: boolean;
  readonly recheckMs?: number;
  /** Deadlines of finding a folder's project, and of listing the folders below its working tree. */
  readonly findMs?: number;
  readonly belowMs?: number;
}

/** Deadlines for a command. They are long, so that a command on a busy machine uses the same space as the proxy. */
export const COMMAND_WAITS = { findMs: 10_000, belowMs: 10_000 } as const;

export class GitProjects implements Projects {
  readonly #dataFolder: string;
  readonly #isReadOnly: boolean;
  readonly #recheckMs: number;
  readonly #findMs: number;
  readonly #belowMs: number;
  readonly #cache = new Recent<string, Cached>(FOLDERS_MAX);

  constructor(dataFolder: string, options: GitProjectsOptions = {}) {
    this.#dataFolder = dataFolder;
    this.#isReadOnly = options.isReadOnly ?? false;
    this.#recheckMs = options.recheckMs ?? RECHECK_MS;
    this.#findMs = options.findMs ?? FIND_MS;
    this.#belowMs = options.belowMs ?? BELOW_MS;
  }

  known(place: Place): Project | undefined {
    const cached = this.#cache.get(keyOf(place));
    // If a command has changed the registry, do not use the cached project.
    if (cached === undefined || cached.registry !== this.#registryStamp()) return undefined;
    const now = performance.now();
    if (now - cached.checkedAt > this.#recheckMs) {
      cached.checkedAt = now;
      void this.#recheck(place, cached.stamp);
    }
    return cached.project;
  }

  find(place: Place): Promise<Project> {
    return typeof place === 'string' ? this.#findFolder(place) : this.#findSpace(place.space);
  }

  async #findSpace(space: string): Promise<Project> {
    const stamp = await stampOf(undefined, this.#dataFolder);
    const read = readRegistry(this.#dataFolder).catch(() => undefined);
    const registry = await within(this.#findMs, read);
    if (registry === undefined) {
      return this.#keep({ space }, { space, olderSpaces: [], isMemoryOff: true }, '');
    }
    const now = spaceNow(registry, space);
    const project = {
      space: now,
      olderSpaces: formerSpaces(registry, now),
      ...offIn(registry, now),
    };
    return this.#keep({ space }, project, stamp);
  }

  async #findFolder(folder: string): Promise<Project> {
    const alone = { space: folderSpace(folder), olderSpaces: [] };
    if (!isAbsolute(folder) || folder.includes('\0')) return this.#keep(folder, alone, '');
    const resolved = this.#resolve(folder).catch(() => undefined);
    const found = await within(this.#findMs, resolved);
    if (found === undefined) {
      const read = readRegistry(this.#dataFolder).catch(() => undefined);
      const registry = await within(this.#belowMs, read);
      return this.#keep(folder, { ...alone, ...offAt(folder, registry) }, '');
    }
    const { project, stamp, root } = found;
    const listed = root === undefined ? NO_FOLDERS : subfoldersOf(root);
    const below = await within(this.#belowMs, listed);
    if (below === undefined) void this.#addLate(folder, stamp, listed);
    return this.#keep(folder, withOlder(project, below ?? []), stamp);
  }

  /** Adds the spaces of subfolders to the cached project, if the subfolders were listed too late for the request. */
  async #addLate(folder: string, stamp: string, listed: Promise<readonly string[]>): Promise<void> {
    const below = await listed;
    const cached = this.#cache.get(folder);
    if (cached?.stamp !== stamp) return;
    this.#keep(folder, withOlder(cached.project, below), stamp);
  }

  #keep(place: Place, project: Project, stamp: string): Project {
    this.#cache.set(keyOf(place), {
      project,
      stamp,
      registry: this.#registryStamp(),
      checkedAt: performance.now(),
    });
    return project;
  }

  #registryStamp(): string {
    try {
      const found = statSync(join(this.#dataFolder, REGISTRY_FILE), { throwIfNoEntry: false });
      return found === undefined ? '' : `${found.mtimeMs} ${found.size}`;
    } catch {
      // The data folder cannot be used. Other code reports that.
      return '';
    }
  }

  async #recheck(place: Place, stamp: string): Promise<void> {
    const repository =
      typeof place === 'string' ? await findRepository(place).catch(() => undefined) : undefined;
    if ((await stampOf(repository, this.#dataFolder)) !== stamp) await this.find(place);
  }

  async #resolve(folder: string) {
    const repository = await findRepository(folder);
    const registry = await readRegistry(this.#dataFolder);
    const stated = registry.joined[repository?.root ?? folder] ?? registry.joined[folder];
    const project =
      stated !== undefined
        ? projectIn(stated, folder, registry)
        : repository === undefined
          ? await projectInFolder(folder, { root: folder, common: '' }, registry)
          : await this.#inRepository(folder, repository, registry);
    const stamp = await stampOf(repository, this.#dataFolder);
    const off = offIn(registry, project.space);
    const whole = { ...project, ...off, ...(await checkedOut(folder, repository)) };
    // The folders of a bare repository are git's own, in which no client works.
    const isTree = repository !== undefined && repository.root !== repository.common;
    return {
      project: whole,
      stamp,
      root: stated === undefined && isTree ? repository.root : undefined,
    };
  }

  async #inRepository(
    folder: string,
    repository: Repository,
    registry: Registry,
  ): Promise<Project> {
    const { root, common, origin } = repository;
    const commits = await commitsOf(common);
    const head = commits.at(-1) ?? '';
    const identity = originIdentity(origin);
    const owner = registry.projects.find(({ identities }) => isIn(identities, identity));
    const known = await knownAs(repository, { identity, owner, commits }, registry);
    // Do not record a repository without commits: nothing could later prove that another folder is the same project.
    const isNew = known === undefined && owner === undefined && head !== '';
    if (known === undefined && !isNew) {
      const found = await projectInFolder(folder, repository, registry);
      return withoutOthers(found, commits, registry);
    }
    const before = known ?? {
      ...NOTHING_KNOWN,
      space:
        identity === undefined ? await spaceInFolder(repository, registry) : projectSpace(identity),
    };
    const tree = await treeOf(root);
    const isOwn = identity !== undefined && (owner === undefined || owner === known);
    const after: KnownProject = {
      ...before,
      identities: isOwn ? union(before.identities, [identity]) : before.identities,
      head: head === '' ? before.head : head,
      commits: union(before.commits, commits),
      folders: union(before.folders, [root, folder]),
      // Keep the order in which svc first saw the folders: the project began in the first one.
      trees: tree === '' || before.trees.includes(tree) ? before.trees : [...before.trees, tree],
    };
    if (!this.#isReadOnly && !isSame(before, after)) await this.#record(before, after);
    const project = projectIn(after.space, folder, { ...registry, projects: [after] });
    return withoutOthers(project, after.commits, registry);
  }

  async #record(before: KnownProject, project: KnownProject): Promise<void> {
    const isIt = ({ space, identities, head }: KnownProject): boolean =>
      space === before.space && (identities.length > 0 || head === before.head);
    const isNew = before.commits.length === 0;
    await changeRegistry(this.#dataFolder, ({ projects, ...rest }) => ({
      ...rest,
      projects: [
        ...projects
          .filter((one) => !isIt(one))
          .map((one) => (isNew ? withoutCopy(one, project) : one)),
        project,
      ],
    })).catch(() => undefined);
  }
}

function offIn(registry: Registry, space: string): Pick<Project, 'isMemoryOff'> {
  return isMemoryOff(registry, space) ? { isMemoryOff: true } : {};
}

/**
 * Says whether memory is off for a folder whose project was not found before the deadline: the user has switched it off
 * for the folder's space, for the space to which the folder was assigned, or for a project that svc has seen there.
 * If the registry was not read in time (undefined), memory is off, because the user may have switched it off.
 */
function offAt(folder: string, registry: Registry | undefined): Pick<Project, 'isMemoryOff'> {
  if (registry === undefined) return { isMemoryOff: true };
  const { projects, joined } = registry;
  const seen = projects.filter(({ folders }) => isIn(folders, folder)).map(({ space }) => space);
  const spaces = [folderSpace(folder), joined[folder] ?? '', ...seen];
  return spaces.some((space) => isMemoryOff(registry, space)) ? { isMemoryOff: true } : {};
}

/** Returns the cache key of a place. No path contains NUL, so the key of a space never equals that of a folder. */
function keyOf(place: Place): string {
  return typeof place === 'string' ? place : `\0${place.space}`;
}

const NO_FOLDERS: Promise<readonly string[]> = Promise.resolve([]);

/**
 * Appends the spaces of subfolders. They come after those of folders that clients stated, because a memory service
 * accepts only a few names.
 */
function withOlder(project: Project, below: readonly string[]): Project {
  const older = new Set([...project.olderSpaces, ...below.map(folderSpace)]);
  older.delete(project.space);
  return { ...project, olderSpaces: [...older] };
}

interface Claim {
  readonly identity: string | undefined;
  /** The known project that has had this identity; undefined if none has. */
  readonly owner: KnownProject | undefined;
  readonly commits: readonly string[];
}

/**
 * Returns the known project to which this repository belongs; undefined if none. One of the project's commits must be
 * in the repository. Candidates, in order: the project with the same origin; a project without an origin that began in
 * this same folder, even if the folder had another path then; a project that svc has seen at this path; a project from
 * whose folder on this machine the repository was cloned; and a project without an origin that is in none of its known
 * folders any more.
 */
async function knownAs(
  repository: Repository,
  { identity, owner, commits }: Claim,
  { projects }: Registry,
): Promise<KnownProject | undefined> {
  const { root, common, origin } = repository;
  if (owner !== undefined && (await holdsAny(common, owner.commits))) return owner;
  const newestFirst = projects.toReversed();
  const tree = await treeOf(root);
  for (const known of newestFirst) {
    if (tree === '' || known.identities.length > 0 || known.trees[0] !== tree) continue;
    // oxlint-disable-next-line no-await-in-loop -- Seldom more than one.
    if (await holdsAny(common, known.commits)) return known;
  }
  const here = newestFirst.filter(({ folders }) => isIn(folders, root));
  const source = newestFirst.filter(({ folders }) => isIn(folders, origin));
  for (const known of identity === undefined ? [...here, ...source] : here) {
    // oxlint-disable-next-line no-await-in-loop -- The first project with a common commit is enough.
    if ((await holdsAny(common, known.commits)) && !(await isLaterCopy(repository, known)))
      return known;
  }
  const held = new Set(commits);
  const local = newestFirst.filter(
    ({ identities, head }) => identities.length === 0 && held.has(head),
  );
  for (const known of local) {
    // oxlint-disable-next-line no-await-in-loop -- The first project that was moved is enough.
    const isTaken = (await isInUse(known, common)) || (await isLaterCopy(repository, known));
    if (!isTaken) return known;
  }
  return undefined;
}

/**
 * Says whether the project is still in one of its folders. Then the repository `common` is not the project in a new
 * place, but a copy of it. A folder counts if its repository is not `common` and has the project's commit `head`. A
 * folder with a clone of another of the project's folders does not count: a clone stays behind when the project moves.
 */
async function isInUse({ folders, head }: KnownProject, common: string): Promise<boolean> {
  for (const folder of folders) {
    // oxlint-disable-next-line no-await-in-loop -- One folder is enough.
    const there = await findRepository(folder);
    if (there === undefined || there.common === common || isIn(folders, there.origin)) continue;
    // oxlint-disable-next-line no-await-in-loop
    if (await holdsAny(there.common, [head])) return true;
  }
  return false;
}

/**
 * Says whether the repository is a copy that svc mistook for the project while the project's own folder was away, for
 * example on a disk that was not mounted. Once that folder is back, it is the project again, and the copy becomes a
 * project of its own. A clone of one of the project's folders is no such copy. A project with an origin never has one.
 */
async function isLaterCopy(
  { root, common, origin }: Repository,
  { identities, folders, commits, trees }: KnownProject,
): Promise<boolean> {
  if (identities.length > 0 || isIn(folders, origin)) return false;
  const own = placeIn(trees, await treeOf(root));
  // Index 0 is the folder in which the project began, so no other folder can be earlier.
  if (own === 0) return false;
  for (const folder of folders) {
    // oxlint-disable-next-line no-await-in-loop -- One folder is enough.
    const there = await findRepository(folder);
    if (there === undefined || there.common === common || isIn(folders, there.origin)) continue;
    // oxlint-disable-next-line no-await-in-loop
    const isEarlier = placeIn(trees, await treeOf(there.root)) < own;
    // oxlint-disable-next-line no-await-in-loop
    if (isEarlier && (await holdsAny(there.common, commits))) return true;
  }
  return false;
}

/**
 * Returns the index of a folder's identity in `trees`, which are in the order in which svc first saw them; Infinity if
 * it is not there.
 */
function placeIn(trees: readonly string[], tree: string): number {
  const place = trees.indexOf(tree);
  return place === -1 ? Number.POSITIVE_INFINITY : place;
}

/**
 * Removes the folders of `copy` from the project `one`, if `copy` is a copy of it that becomes a project of its own.
 */
function withoutCopy(one: KnownProject, copy: KnownProject): KnownProject {
  const commits = new Set(copy.commits);
  const isCopied =
    one.identities.length === 0 &&
    one.trees.some((tree) => copy.trees.includes(tree)) &&
    one.commits.some((commit) => commits.has(commit));
  if (!isCopied) return one;
  return {
    ...one,
    folders: one.folders.filter((folder) => !copy.folders.includes(folder)),
    trees: one.trees.filter((tree) => !copy.trees.includes(tree)),
  };
}

/**
 * Returns the space that a folder gets from its path. If an earlier project with this space was in the folder and has
 * moved, that project keeps the space, and this folder gets another one.
 */
async function spaceInFolder(
  { root, common }: Pick<Repository, 'root' | 'common'>,
  { projects }: Registry,
): Promise<string> {
  const tree = await treeOf(root);
  const hasLeft = async (one: KnownProject): Promise<boolean> =>
    isReplaced(one, tree) || (await isInUse(one, common));
  for (let number = 1; ; number += 1) {
    // No path contains NUL, so this space belongs to no other folder.
    const space = folderSpace(number === 1 ? root : `${root}\0${number}`);
    const earlier = projects.filter((one) => one.space === space);
    // oxlint-disable-next-line no-await-in-loop -- Seldom more than one.
    if (!(await Promise.all(earlier.map(hasLeft))).includes(true)) return space;
  }
}

/** Returns the project of a folder by its path, without the spaces of other projects that were at this path earlier. */
async function projectInFolder(
  folder: string,
  place: Pick<Repository, 'root' | 'common'>,
  registry: Registry,
): Promise<Project> {
  const space = await spaceInFolder(place, registry);
  const project = projectIn(space, folder, registry);
  return space === folderSpace(place.root) ? project : withoutOthers(project, [], registry);
}

/** Says whether another folder is now at the project's path. `tree`: the identity of the folder that is there. */
function isReplaced({ trees }: KnownProject, tree: string): boolean {
  return trees.length > 0 && tree !== '' && !trees.includes(tree);
}

/**
 * Returns the identity of a folder on its disk: its inode number and its time of creation. A folder keeps both when it
 * is renamed; the number alone may be reused for a new folder. '' if there is no folder, or no time of creation.
 */
async function treeOf(root: string): Promise<string> {
  const found = await stat(root, { bigint: true }).catch(() => undefined);
  if (found === undefined || found.birthtimeNs <= 0n) return '';
  return `${found.ino}-${found.birthtimeNs}`;
}

/** Removes from `olderSpaces` the spaces of known projects that share no commit with this project. */
function withoutOthers(
  project: Project,
  commits: readonly string[],
  { projects }: Registry,
): Project {
  const own = new Set(commits);
  const others = projects.filter(
    (one) => one.space !== project.space && !one.commits.some((hash) => own.has(hash)),
  );
  const foreign = new Set(others.map(({ space }) => space));
  return {
    ...project,
    olderSpaces: project.olderSpaces.filter((space) => !foreign.has(space)),
  };
}

function isIn(names: readonly string[], name: string | undefined): boolean {
  return name !== undefined && name !== '' && names.includes(name);
}

const NOTHING_KNOWN = { identities: [], head: '', commits: [], folders: [], trees: [] };

/**
 * Returns the project of a space. `olderSpaces` gets the space's earlier names, and the spaces that its folders would
 * have without a known project.
 */
function projectIn(given: string, folder: string, registry: Registry): Project {
  const space = spaceNow(registry, given);
  const known = registry.projects.find((one) => one.space === given);
  const folders = [folder, ...(known?.folders ?? [])].map(folderSpace);
  const older = new Set([...folders, given, ...formerSpaces(registry, space)]);
  older.delete(space);
  return { space, olderSpaces: [...older] };
}

/** Merges two lists without duplicates. The elements of `now` come last, in their order. */
function union(before: readonly string[], now: readonly string[]): readonly string[] {
  const fresh = new Set(now);
  return [...before.filter((one) => !fresh.has(one)), ...fresh];
}

function isSame(before: KnownProject, after: KnownProject): boolean {
  const known = new Set(before.folders);
  return (
    before.head === after.head &&
    after.identities.at(-1) === before.identities.at(-1) &&
    after.folders.every((folder) => known.has(folder)) &&
    after.trees.every((tree) => before.trees.includes(tree))
  );
}

async function checkedOut(
  folder: string,
  repository: Repository | undefined,
): Promise<Pick<Project, 'root' | 'branch'>> {
  const root = repository?.top ?? (await realpath(folder).catch(() => undefined));
  const { branch } = repository === undefined ? {} : await readHead(repository);
  return { ...(root !== undefined && { root }), ...(branch !== undefined && { branch }) };
}

async function stampOf(repository: Repository | undefined, dataFolder: string): Promise<string> {
  const { own = '', common = '' } = repository ?? {};
  const shared = ['config', 'HEAD', join('logs', 'HEAD')].map((name) => join(common, name));
  const files = repository === undefined ? [] : [...shared, join(own, 'HEAD')];
  const times = [...files, join(dataFolder, REGISTRY_FILE)].map((path) =>
    stat(path).then(
      ({ mtimeMs, size }) => `${mtimeMs} ${size}`,
      () => '',
    ),
  );
  return [common, ...(await Promise.all(times))].join('\n');
}

const NO_COMMIT = /^0+$/;
const LOG_BYTES_MAX = 64 * 1024;
/** Bound on files of refs that are read. Most refs of a large repository are in the file `packed-refs`. */
const REFS_MAX = 64;
const PACKS_MAX = 256;
const COMMITS_MAX = 512;

/** Reads commits of a repository from its refs and its log; the commit of HEAD is last. Empty if it has none. */
export async function commitsOf(common: string): Promise<readonly string[]> {
  const packed = await readPacked(common);
  const log = await readBounded(join(common, 'logs', 'HEAD'), LOG_BYTES_MAX);
  const refs = await Promise.all((await refFiles(common)).map(hashIn));
  const { commit } = await readHead({ own: common, common });
  const found = [...hashes(packed), ...refs, ...hashes(log), commit];
  const commits = [...new Set(found.toReversed())].filter((one) => one !== '').toReversed();
  return commits.slice(-COMMITS_MAX);
}

/** Says whether the repository has one of these commits: in its refs, its log, a loose object or a pack. */
export async function holdsAny(common: string, wanted: readonly string[]): Promise<boolean> {
  const known = new Set(await commitsOf(common));
  if (wanted.some((commit) => known.has(commit))) return true;
  for (const commit of wanted) {
    const loose = join(common, 'objects', commit.slice(0, 2), commit.slice(2));
    if ((await kindOf(loose)) === 'file') return true;
  }
  const folder = join(common, 'objects', 'pack');
  const names = await readdir(folder).catch(() => []);
  const indexes = names.filter((name) => /^pack-[0-9a-f]+\.idx$/.test(name)).slice(0, PACKS_MAX);
  for (const name of indexes) {
    if (await packHolds(join(folder, name), wanted)) return true;
  }
  return false;
}

function hashes(text: string): readonly string[] {
  return (text.match(COMMIT_HASH) ?? []).filter((hash) => !NO_COMMIT.test(hash));
}

async function refFiles(common: string): Promise<readonly string[]> {
  const folders = ['refs/heads', 'refs/remotes/origin', 'refs/tags'];
  const files = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(join(common, folder), { withFileTypes: true }).catch(() => []);
      return names.filter((one) => one.isFile()).map(({ name }) => join(common, folder, name));
    }),
  );
  return files.flat().slice(0, REFS_MAX);
}

const INDEX_MAGIC = 0xff744f63;
const FANOUT_BYTES = 8;
const TABLE_BYTES = FANOUT_BYTES + 256 * 4;
const HASH_BYTES = 20;

/** Says whether a pack has one of the commits, by a binary search in its index (version 2, SHA-1). */
async function packHolds(path: string, wanted: readonly string[]): Promise<boolean> {
  const found = await withFile(path, async (file) => {
    const head = await bytesAt(file, 0, TABLE_BYTES);
    if (head.length < TABLE_BYTES || head.readUInt32BE(0) !== INDEX_MAGIC) return false;
    for (const commit of wanted) {
      const hash = Buffer.from(commit, 'hex');
      if (hash.length !== HASH_BYTES) continue;
      const first = hash[0] ?? 0;
      let low = first === 0 ? 0 : head.readUInt32BE(FANOUT_BYTES + (first - 1) * 4);
      let high = head.readUInt32BE(FANOUT_BYTES + first * 4);
      while (low < high) {
        const middle = (low + high) >>> 1;
        const name = await bytesAt(file, TABLE_BYTES + middle * HASH_BYTES, HASH_BYTES);
        if (name.length < HASH_BYTES) return false;
        const order = name.compare(hash);
        if (order === 0) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
      }
    }
    return false;
  });
  return found === true;
}

/**
 * Levels of subfolders that are listed, such as `packages/api/src`. Users hardly ever start a client in deeper ones.
 */
const DEPTH_MAX = 3;
/** Bounds on folders that are listed at the same time, and in all. */
const READS_AT_ONCE = 32;
const READS_MAX = 256;

/** Matches folders that are not listed, because hardly any client works there: hidden ones and installed packages. */
const SKIPPED = /^(?:\..*|node_modules)$/;

/**
 * Lists subfolders of a working tree, upper levels first, within a bound. If a client worked in one of them while svc
 * did not recognise the repository, the memories of that time are in a space of that folder. A folder with its own
 * `.git` is another project and left out.
 */
export async function subfoldersOf(root: string): Promise<readonly string[]> {
  const found: string[] = [];
  const waiting = [{ folder: root, depth: 0 }];
  for (let reads = 0; reads < READS_MAX && waiting.length > 0; reads += READS_AT_ONCE) {
    const some = waiting.splice(0, READS_AT_ONCE);
    // oxlint-disable-next-line no-await-in-loop -- Upper levels first.
    const opened = await Promise.all(some.map(({ folder }) => contentsOf(folder, folder !== root)));
    for (const [at, { folder, isOther, folders }] of opened.entries()) {
      const depth = (some[at]?.depth ?? 0) + 1;
      if (isOther) continue;
      if (folder !== root) found.push(folder);
      if (depth <= DEPTH_MAX) waiting.push(...folders.map((one) => ({ folder: one, depth })));
    }
  }
  return found;
}

async function contentsOf(folder: string, isBelow: boolean) {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const isOther = isBelow && entries.some(({ name }) => name === '.git');
  const folders = entries
    .filter((entry) => entry.isDirectory() && !SKIPPED.test(entry.name))
    .map(({ name }) => join(folder, name));
  return { folder, isOther, folders };
}

const URL_CHARS_MAX = 2048;
const DEFAULT_PORTS: ReadonlySet<string> = new Set(['22', '80', '443', '9418']);

/**
 * Returns the identity of an `origin` address: `host/path` in lower case, with the port unless it is a default one, and
 * without credentials. The usual spellings of an address have the same identity, on all machines. Undefined for a path
 * on this machine, and for anything else that is no address.
 */
function originIdentity(url: string): string | undefined {
  const text = url.trim();
  if (text === '' || text.length > URL_CHARS_MAX || /[\s\0\\]/.test(text)) return undefined;
  const [, host = '', port = '', path = ''] =
    /^[a-z][a-z0-9+.-]*:\/\/(?:[^@/]*@)?(\[[^\]/]*\]|[^:/]+)(?::(\d{1,5}))?\/(.+)$/i.exec(text) ??
    scpForm(text);
  if (host === '' || /^file:/i.test(text)) return undefined;
  const plain = path
    .replace(/[?#].*$/, '')
    .replace(/^[/~]+/, '')
    .replace(/\/+$/, '')
    .replace(/\.git$/i, '')
    .replace(/\/+$/, '');
  if (plain === '') return undefined;
  const place = port === '' || DEFAULT_PORTS.has(port) ? host : `${host}:${port}`;
  return `${place}/${plain}`.toLowerCase();
}

/** Parses `git@host:path`, which is no URL. Returns the same groups as the expression for URLs; [] for other texts. */
function scpForm(text: string): readonly string[] {
  const [, host = '', path = ''] = /^(?:[^@/:]+@)?([^/:@]+):(?!\/\/)(.+)$/.exec(text) ?? [];
  // A single letter is not a host but a drive on Windows.
  return host.length < 2 ? [] : ['', host, '', path];
}

/** Returns the space of an identity: a readable name and a hash. */
function projectSpace(identity: string): string {
  const name = folderSpace(identity).replace(/-[0-9a-f]{10}$/, '');
  const digest = createHash('sha256').update(`origin ${identity}`).digest('hex');
  return `${name}-${digest.slice(0, 10)}`;
}
