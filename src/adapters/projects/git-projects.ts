import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { forgetOldest } from '../../core/bytes/forget-oldest.ts';
import { originIdentity, projectSpace } from '../../core/request/project-identity.ts';
import { subfoldersOf } from './subfolders.ts';
import { folderSpace } from '../../core/request/space.ts';
import type { Project, Projects } from '../../ports/projects.ts';
import { within } from '../within.ts';
import { commitsOf, holdsAny } from './commits.ts';
import { readHead } from './head.ts';
import { changeRegistry, type KnownProject, readRegistry, type Registry } from './registry.ts';
import { findRepository, type Repository } from './repository.ts';

/**
 * Projects by their git repository: subfolders, worktrees, clones and renamed folders share one
 * memory. An address in a configuration proves nothing, because anyone can copy it. A folder joins
 * a known project only when it holds a commit that svc saw there, or when the person says so.
 */

/** A local disk answers in a few; on a network drive the folder is its own project. */
const FIND_MS = 300;
/** A local disk lists 256 folders in 10 ms. A slow one may have them at the next look. */
const BELOW_MS = 100;
/**
 * The interval after which svc looks again, in the background, at a folder that a client works in.
 */
const RECHECK_MS = 3_000;
const FOLDERS_MAX = 1_000;

interface Cached {
  readonly project: Project;
  /** Stamp of the files that decide which project it is. */
  readonly stamp: string;
  checkedAt: number;
}

interface GitProjectsOptions {
  /** The projects that are found are used and not recorded. */
  readonly isReadOnly?: boolean;
  readonly recheckMs?: number;
  /** How long a folder may take, and then the folders below its working tree. */
  readonly findMs?: number;
  readonly belowMs?: number;
}

/** For a command, for which no request waits: a busy machine must not move memories to another space. */
export const COMMAND_WAITS = { findMs: 10_000, belowMs: 10_000 } as const;

export class GitProjects implements Projects {
  readonly #dataFolder: string;
  readonly #isReadOnly: boolean;
  readonly #recheckMs: number;
  readonly #findMs: number;
  readonly #belowMs: number;
  readonly #cache = new Map<string, Cached>();

  constructor(dataFolder: string, options: GitProjectsOptions = {}) {
    this.#dataFolder = dataFolder;
    this.#isReadOnly = options.isReadOnly ?? false;
    this.#recheckMs = options.recheckMs ?? RECHECK_MS;
    this.#findMs = options.findMs ?? FIND_MS;
    this.#belowMs = options.belowMs ?? BELOW_MS;
  }

  known(folder: string): Project | undefined {
    const cached = this.#cache.get(folder);
    if (cached === undefined) return undefined;
    const now = performance.now();
    if (now - cached.checkedAt > this.#recheckMs) {
      cached.checkedAt = now;
      void this.#recheck(folder, cached.stamp);
    }
    return cached.project;
  }

  async find(folder: string): Promise<Project> {
    const alone = { space: folderSpace(folder), olderSpaces: [] };
    if (!isAbsolute(folder) || folder.includes('\0')) return this.#keep(folder, alone, '');
    const resolved = this.#resolve(folder).catch(() => undefined);
    const found = await within(this.#findMs, resolved);
    // Kept, so that a conversation does not move to another space in its middle.
    if (found === undefined) return this.#keep(folder, alone, '');
    const { project, stamp, root } = found;
    const listed = root === undefined ? NO_FOLDERS : subfoldersOf(root);
    const below = await within(this.#belowMs, listed);
    if (below === undefined) void this.#addLate(folder, stamp, listed);
    return this.#keep(folder, withOlder(project, below ?? []), stamp);
  }

  /** The folders below came too late for a request: later ones have them. */
  async #addLate(folder: string, stamp: string, listed: Promise<readonly string[]>): Promise<void> {
    const below = await listed;
    const cached = this.#cache.get(folder);
    if (cached?.stamp !== stamp) return;
    this.#keep(folder, withOlder(cached.project, below), stamp);
  }

  #keep(folder: string, project: Project, stamp: string): Project {
    this.#cache.set(folder, { project, stamp, checkedAt: performance.now() });
    forgetOldest(this.#cache, FOLDERS_MAX);
    return project;
  }

  async #recheck(folder: string, stamp: string): Promise<void> {
    const repository = await findRepository(folder).catch(() => undefined);
    if ((await stampOf(repository, this.#dataFolder)) !== stamp) await this.find(folder);
  }

  async #resolve(folder: string) {
    const repository = await findRepository(folder);
    const registry = await readRegistry(this.#dataFolder);
    const stated = registry.joined[repository?.root ?? folder] ?? registry.joined[folder];
    const project =
      stated === undefined && repository !== undefined
        ? await this.#inRepository(folder, repository, registry)
        : projectIn(stated ?? folderSpace(folder), folder, registry);
    const stamp = await stampOf(repository, this.#dataFolder);
    const whole = { ...project, ...(await checkedOut(folder, repository)) };
    return { project: whole, stamp, root: stated === undefined ? repository?.root : undefined };
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
    const known = await knownAs(repository, { identity, commits }, registry);
    const derived = identity === undefined ? folderSpace(root) : projectSpace(identity);
    const isTaken = registry.projects.some((one) => one.identity === identity);
    // Without a commit nothing could ever prove that another folder is the same project.
    const isNew = known === undefined && (identity === undefined || !isTaken) && head !== '';
    if (known === undefined && !isNew) return projectIn(folderSpace(root), folder, registry);
    const before = known ?? { ...NOTHING_KNOWN, space: derived, identity: identity ?? '' };
    const after: KnownProject = {
      ...before,
      head: head === '' ? before.head : head,
      commits: union(before.commits, commits),
      folders: union(before.folders, [...mainFolder(common), root, folder]),
    };
    if (!this.#isReadOnly && !isSame(before, after)) await this.#record(before, after);
    return projectIn(after.space, folder, { ...registry, projects: [after] });
  }

  async #record(before: KnownProject, project: KnownProject): Promise<void> {
    const isIt = ({ space, identity, head }: KnownProject): boolean =>
      space === before.space &&
      identity === before.identity &&
      (identity !== '' || head === before.head);
    await changeRegistry(this.#dataFolder, ({ projects, joined }) => ({
      joined,
      projects: [...projects.filter((one) => !isIt(one)), project],
    })).catch(() => undefined);
  }
}

const NO_FOLDERS: Promise<readonly string[]> = Promise.resolve([]);

/** The spaces that clients stated come first: a memory service takes a few names only. */
function withOlder(project: Project, below: readonly string[]): Project {
  const older = new Set([...project.olderSpaces, ...below.map(folderSpace)]);
  older.delete(project.space);
  return { ...project, olderSpaces: [...older] };
}

/** The project that svc knows and that this repository proves to be. */
async function knownAs(
  { root, common, origin }: Repository,
  {
    identity,
    commits,
  }: { readonly identity: string | undefined; readonly commits: readonly string[] },
  { projects }: Registry,
): Promise<KnownProject | undefined> {
  if (identity !== undefined) {
    const known = projects.find((one) => one.identity === identity);
    const isProven = known !== undefined && (await holdsAny(common, known.commits));
    return isProven ? known : undefined;
  }
  // Without an address: the same folder, the one that it was cloned from, or one that was moved.
  const local = projects.filter((one) => one.identity === '' && one.head !== '');
  const named = local.filter((one) => one.folders.some((it) => it === root || it === origin));
  const held = new Set(commits);
  const moved = local.find(({ head }) => held.has(head));
  if (moved !== undefined) return moved;
  for (const known of named) if (await holdsAny(common, [known.head])) return known;
  return undefined;
}

const NOTHING_KNOWN = { head: '', commits: [], folders: [], formerSpaces: [] };

/** Before it was one project, each of its folders had a space of its own. */
function projectIn(space: string, folder: string, { projects }: Registry): Project {
  const known = projects.find((one) => one.space === space);
  const folders = [folder, ...(known?.folders ?? [])].map(folderSpace);
  const older = new Set([...folders, ...(known?.formerSpaces ?? [])]);
  older.delete(space);
  return { space, olderSpaces: [...older] };
}

/** The main folder of a worktree's repository: memories may be under that path. */
function mainFolder(common: string): readonly string[] {
  return basename(common) === '.git' ? [dirname(common)] : [];
}

/** The newest last, as in the second list. */
function union(before: readonly string[], now: readonly string[]): readonly string[] {
  const fresh = new Set(now);
  return [...before.filter((one) => !fresh.has(one)), ...fresh];
}

function isSame(before: KnownProject, after: KnownProject): boolean {
  const known = new Set(before.folders);
  return (
    before.head === after.head &&
    before.identity === after.identity &&
    after.folders.every((folder) => known.has(folder))
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
  const own = repository === undefined ? [] : ['config', 'HEAD', join('logs', 'HEAD')];
  const paths = [
    ...own.map((name) => join(repository?.common ?? '', name)),
    ...(repository === undefined ? [] : [join(repository.own, 'HEAD')]),
    join(dataFolder, 'projects.json'),
  ];
  const times = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        ({ mtimeMs, size }) => `${mtimeMs} ${size}`,
        () => '',
      ),
    ),
  );
  return [repository?.common ?? '', ...times].join('\n');
}
