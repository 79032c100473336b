import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The folders of a working tree in which a client may have worked before svc knew repositories: then each
 * had a space of its own. Only names are read, the upper levels first, within a bound.
 */

/** Such as `packages/api/src`: people do not start clients in deeper folders. */
const DEPTH_MAX = 3;
/** Folders that are looked into at once, and in all; each is one call of the system. */
const READS_AT_ONCE = 32;
const READS_MAX = 256;

/** Hidden folders and installed packages are no place to work in. */
const SKIPPED = /^(?:\..*|node_modules)$/;

/** A folder with a `.git` of its own is another project, with all that is in it. */
export async function subfoldersOf(root: string): Promise<readonly string[]> {
  const found: string[] = [];
  const waiting = [{ folder: root, depth: 0 }];
  for (let reads = 0; reads < READS_MAX && waiting.length > 0; reads += READS_AT_ONCE) {
    const some = waiting.splice(0, READS_AT_ONCE);
    // oxlint-disable-next-line no-await-in-loop -- The upper levels first.
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

interface Contents {
  readonly folder: string;
  readonly isOther: boolean;
  readonly folders: readonly string[];
}

async function contentsOf(folder: string, isBelow: boolean): Promise<Contents> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const isOther = isBelow && entries.some(({ name }) => name === '.git');
  const folders = entries
    .filter((entry) => entry.isDirectory() && !SKIPPED.test(entry.name))
    .map(({ name }) => join(folder, name));
  return { folder, isOther, folders };
}
