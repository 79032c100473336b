import { join } from 'node:path';
import { asList, asRecord, asText, isRecord, parseJson } from '../../core/bytes/json-fields.ts';
import { isSpace } from '../../core/request/space.ts';
import { withFileLock } from '../files/file-lock.ts';
import { makePrivateFolder } from '../files/private-files.ts';
import { replaceFile } from '../files/replace-file.ts';
import { readBounded } from './bounded-read.ts';

/**
 * The projects on this machine that svc knows: `projects.json` in the data folder. It holds paths
 * and commit hashes, and no text.
 */

export const REGISTRY_FILE = 'projects.json';
const BYTES_MAX = 8 * 1024 * 1024;
const PROJECTS_MAX = 1000;
const COMMITS_MAX = 64;
const FOLDERS_MAX = 64;

export interface KnownProject {
  readonly space: string;
  /** The origin's identity; '' for a project that is known by its folder. */
  readonly identity: string;
  /** The branch or commit of HEAD when svc last looked. */
  readonly head: string;
  /** Some commits that it held, the newest last. */
  readonly commits: readonly string[];
  /** Folders in it that clients stated, the newest last. */
  readonly folders: readonly string[];
  /** Spaces that it had before it was renamed or merged. */
  readonly formerSpaces: readonly string[];
}

export interface Registry {
  readonly projects: readonly KnownProject[];
  /** Folders that the person put into a space, by path. */
  readonly joined: Readonly<Record<string, string>>;
}

export async function readRegistry(dataFolder: string): Promise<Registry> {
  const value = asRecord(parseJson(await readBounded(join(dataFolder, REGISTRY_FILE), BYTES_MAX)));
  const projects = asList(value['projects']).map(asRecord).map(projectFrom);
  const joined = Object.entries(asRecord(value['joined'])).flatMap(([folder, space]) =>
    typeof space === 'string' && isSpace(space) ? [[folder, space] as const] : [],
  );
  return {
    projects: projects.filter(({ space }) => isSpace(space)),
    joined: Object.fromEntries(joined),
  };
}

/** Other processes may change it too: `change` gets what the file holds now. */
export async function changeRegistry(
  dataFolder: string,
  change: (registry: Registry) => Registry,
): Promise<void> {
  makePrivateFolder(dataFolder);
  const path = join(dataFolder, REGISTRY_FILE);
  await withFileLock(`${path}.lock`, async () => {
    const next = change(await readRegistry(dataFolder));
    const projects = next.projects.slice(-PROJECTS_MAX).map(bounded);
    await replaceFile(path, JSON.stringify({ version: 1, ...next, projects }));
  });
}

function bounded(project: KnownProject): KnownProject {
  return {
    ...project,
    commits: project.commits.slice(-COMMITS_MAX),
    folders: project.folders.slice(-FOLDERS_MAX),
  };
}

function projectFrom(value: Readonly<Record<string, unknown>>): KnownProject {
  const texts = (name: string): readonly string[] => asList(value[name]).map(asText);
  return {
    space: isRecord(value) ? asText(value['space']) : '',
    identity: asText(value['identity']),
    head: asText(value['head']),
    commits: texts('commits').filter((one) => /^[0-9a-f]{40,64}$/.test(one)),
    folders: texts('folders').filter((one) => one !== ''),
    formerSpaces: texts('formerSpaces').filter(isSpace),
  };
}
