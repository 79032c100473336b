import { lstat } from 'node:fs/promises';
import { readRegistry, spaceNow } from '../../adapters/projects/registry.ts';
import { type FileVerdict, type Holds, holdsNow } from '../../core/memory/outgrown.ts';
import type { Code, HeldProvenance } from '../../ports/provenance.ts';

/** Compares the files of memories with the folders of their projects, for a person who waits. */

/** A few thousand files take a second. A disk that hangs ends the check here. */
const CHECK_MS = 10_000;

export interface FileCheck {
  readonly path: string;
  readonly state: FileVerdict;
}

export interface CodeCheck {
  readonly held: HeldProvenance;
  readonly files: readonly FileCheck[];
  readonly holds: Holds;
}

export class CodeChecker {
  readonly #code: Code;
  readonly #dataFolder: string;
  /** By the space and the root of a memory. */
  readonly #roots = new Map<string, Promise<string>>();

  constructor(code: Code, dataFolder: string) {
    this.#code = code;
    this.#dataFolder = dataFolder;
  }

  /** Checks the files of each memory. The results have the order of `all`. */
  async check(all: readonly HeldProvenance[]): Promise<readonly CodeCheck[]> {
    const checks: CodeCheck[] = [];
    // oxlint-disable-next-line no-await-in-loop -- One disk.
    for (const held of all) checks.push(await this.#checkOne(held));
    return checks;
  }

  async #checkOne(held: HeldProvenance): Promise<CodeCheck> {
    const root = await this.#rootOf(held);
    const verdicts = await this.#code.compare(root, held.files, CHECK_MS);
    const files = held.files.map(({ path }, at) => ({ path, state: verdicts[at] ?? 'unknown' }));
    return { held, files, holds: holdsNow(verdicts, root === held.root) };
  }

  /** The folder of that time; where it is gone, the newest folder of the project that is there. */
  #rootOf({ root, record: { space } }: HeldProvenance): Promise<string> {
    const key = `${space}\0${root}`;
    const found = this.#roots.get(key) ?? this.#findRoot(space, root);
    this.#roots.set(key, found);
    return found;
  }

  async #findRoot(space: string, root: string): Promise<string> {
    if (await isFolder(root)) return root;
    const registry = await readRegistry(this.#dataFolder);
    const now = spaceNow(registry, space);
    const folders = registry.projects
      .filter((one) => spaceNow(registry, one.space) === now)
      .flatMap((one) => one.folders);
    for (const folder of folders.toReversed()) {
      // oxlint-disable-next-line no-await-in-loop -- The first one that is there is enough.
      if (await isFolder(folder)) return folder;
    }
    return root;
  }
}

async function isFolder(path: string): Promise<boolean> {
  const stat = await lstat(path).catch(() => undefined);
  return stat?.isDirectory() === true;
}
