import { readFileSync, statSync } from 'node:fs';
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { asList, asRecord, asText, isRecord, parseJson } from '../../core/bytes/json-fields.ts';
import { isSpace } from '../../core/request/space.ts';
import { SpaceNames } from '../../core/request/space-names.ts';
import { codeOf, FileError } from '../files/file-error.ts';
import { withFileLock } from '../files/file-lock.ts';
import { makePrivateFolder } from '../files/private-files.ts';
import { replaceFile } from '../files/replace-file.ts';

/**
 * Reads and changes the registry of this machine's projects: `projects.json` in the data folder. It contains paths,
 * addresses and commit hashes, but no texts of conversations.
 */

export const REGISTRY_FILE = 'projects.json';
const BYTES_MAX = 8 * 1024 * 1024;
/** Bound on the characters of the file: each takes at most three bytes. */
const CHARS_MAX = BYTES_MAX / 3;
const PROJECTS_MAX = 1000;
const COMMITS_MAX = 64;
const FOLDERS_MAX = 64;
/** Bound on identities of a project. A project gets a new one when its `origin` changes. */
const IDENTITIES_MAX = 16;

export interface KnownProject {
  /** The space that svc gave the project. It stays when the user renames the space: `forwards` has the new name. */
  readonly space: string;
  /** The identities of its origins (see originIdentity), newest last; empty for a project without an origin. */
  readonly identities: readonly string[];
  /** The commit of HEAD, as svc last read it. */
  readonly head: string;
  /** Some of its commits, newest last. A repository must have one of them to count as the same project. */
  readonly commits: readonly string[];
  /** The top folders of its repositories, and the folders in them that clients stated, newest last. */
  readonly folders: readonly string[];
  /**
   * The identities of its top folder on disk (see treeOf), in the order in which svc first saw them. A folder keeps its
   * identity when it moves.
   */
  readonly trees: readonly string[];
}

export interface Registry {
  readonly projects: readonly KnownProject[];
  /** Folders that the user assigned to a space, by path. */
  readonly joined: Readonly<Record<string, string>>;
  /** For each renamed or merged space, the space that now has its memories. No target is itself a key. */
  readonly forwards: Readonly<Record<string, string>>;
  /** The spaces for which `svc memory off` has switched memory off. */
  readonly off: readonly string[];
  /** True if the file exists and cannot be read. Memory is then off everywhere, because the file may have said so. */
  readonly isBroken?: true;
}

/** Returns the present name of a space: the one to which it was renamed or merged, or else its own. */
export function spaceNow({ forwards }: Pick<Registry, 'forwards'>, space: string): string {
  return Object.hasOwn(forwards, space) ? (forwards[space] ?? space) : space;
}

/** Says whether memory is off for this space: by its present name or an earlier one, or because the file is broken. */
export function isMemoryOff(
  registry: Pick<Registry, 'forwards' | 'isBroken' | 'off'>,
  space: string,
): boolean {
  if (registry.isBroken === true) return true;
  const now = spaceNow(registry, space);
  return registry.off.some((one) => spaceNow(registry, one) === now);
}

/** Returns the spaces that were renamed to this one or merged into it. */
export function formerSpaces({ forwards }: Pick<Registry, 'forwards'>, space: string) {
  return Object.keys(forwards).filter((former) => forwards[former] === space);
}

/** Returns the forwarding map after `from` is renamed to `to` or merged into it. */
export function withForward(
  forwards: Registry['forwards'],
  from: string,
  to: string,
): Registry['forwards'] {
  const spaces = [...Object.keys(forwards), from].filter((space) => space !== to);
  const after = (now: string): string => (now === from ? to : now);
  return Object.fromEntries(spaces.map((space) => [space, after(spaceNow({ forwards }, space))]));
}

/** Returns the short names of spaces, unique among all projects of this machine and the `others`. */
export function spaceNames(dataFolder: string, others: Iterable<string> = []): SpaceNames {
  const { projects, joined, forwards } = registryFrom(readNow(join(dataFolder, REGISTRY_FILE)));
  const named = [...projects.map(({ space }) => space), ...Object.values(joined)];
  return new SpaceNames([...named.map((space) => spaceNow({ forwards }, space)), ...others]);
}

/**
 * Reads the file synchronously, because commands need names in code that cannot wait; '' if it cannot be read or is too
 * long.
 */
function readNow(path: string): string {
  try {
    return statSync(path).size > BYTES_MAX ? '' : readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

export async function readRegistry(dataFolder: string): Promise<Registry> {
  const text = await readText(join(dataFolder, REGISTRY_FILE));
  if (text === undefined) return registryFrom('');
  return isRecord(parseJson(text)) ? registryFrom(text) : { ...registryFrom(''), isBroken: true };
}

/** Reads the registry. Throws FileError if the file exists and cannot be read. */
export async function readWholeRegistry(dataFolder: string): Promise<Registry> {
  const registry = await readRegistry(dataFolder);
  if (registry.isBroken !== true) return registry;
  const path = join(dataFolder, REGISTRY_FILE);
  throw new FileError(
    `${path}, which names your projects, cannot be read. Until it can, memory is off for all of them.`,
    'Put a copy in its place, or correct it. Without one, delete it and repeat each svc memory off and svc memory spaces join.',
  );
}

/** Reads the file as text; undefined if there is none, '' if it cannot be read. */
async function readText(path: string): Promise<string | undefined> {
  try {
    const stat = await lstat(path);
    return stat.isFile() && stat.size <= BYTES_MAX ? await readFile(path, 'utf8') : '';
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? undefined : '';
  }
}

function registryFrom(text: string): Registry {
  const value = asRecord(parseJson(text));
  const projects = asList(value['projects']).map(asRecord).map(projectFrom);
  return {
    projects: projects.filter(({ space }) => isSpace(space)),
    joined: spacesIn(value['joined']),
    forwards: spacesIn(value['forwards']),
    off: asList(value['off']).map(asText).filter(isSpace),
  };
}

function spacesIn(value: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(asRecord(value)).flatMap(([key, space]) =>
    typeof space === 'string' && isSpace(space) ? [[key, space] as const] : [],
  );
  return Object.fromEntries(entries);
}

/**
 * Changes the registry under a lock between processes. `change` gets the file's present content. Throws a FileError,
 * and leaves the file as it is, if it cannot be read.
 */
export async function changeRegistry(
  dataFolder: string,
  change: (registry: Registry) => Registry,
): Promise<void> {
  makePrivateFolder(dataFolder);
  const path = join(dataFolder, REGISTRY_FILE);
  await withFileLock(`${path}.lock`, async () => {
    const next = change(await readWholeRegistry(dataFolder));
    let projects = next.projects.slice(-PROJECTS_MAX).map(bounded);
    const written = (): string => JSON.stringify({ version: 1, ...next, projects });
    while (written().length > CHARS_MAX && projects.length > 1) {
      projects = projects.slice(projects.length >> 1);
    }
    await replaceFile(path, written());
  });
}

function bounded(project: KnownProject): KnownProject {
  return {
    ...project,
    commits: project.commits.slice(-COMMITS_MAX),
    folders: project.folders.slice(-FOLDERS_MAX),
    identities: project.identities.slice(-IDENTITIES_MAX),
    trees: project.trees.slice(-FOLDERS_MAX),
  };
}

function projectFrom(value: Readonly<Record<string, unknown>>): KnownProject {
  const texts = (name: string): readonly string[] => asList(value[name]).map(asText);
  return {
    space: asText(value['space']),
    identities: texts('identities').filter((one) => one !== ''),
    head: asText(value['head']),
    commits: texts('commits').filter((one) => /^[0-9a-f]{40,64}$/.test(one)),
    folders: texts('folders').filter((one) => one !== ''),
    trees: texts('trees').filter((one) => one !== ''),
  };
}
