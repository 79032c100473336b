import { spaceNames } from '../../adapters/projects/registry.ts';
import type { SpaceNames } from '../../core/request/space-names.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import type { ProvenanceStore } from '../../ports/provenance.ts';
import type { OpenStore } from '../compose-store.ts';
import type { CommandContext } from '../context.ts';
import { limitOf, timeText } from '../listing.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import { wrapped } from '../text-table.ts';
import { type CodeCheck, CodeChecker, type FileCheck } from './code-check.ts';
import { withStore } from './memory.ts';
import { fileText } from './memory-show.ts';

/** `svc memory list --stale`: the memories that the code has outgrown, by project. */

export interface StaleOptions {
  readonly space?: string;
  readonly limit?: string;
  readonly json?: boolean;
}

const LIMIT = { fallback: 20, max: 1000 };
const PAGE = 200;
/** More memories than anybody has. */
const PAGES_MAX = 5_000;
const TEXT_CHARS_MAX = 200;

interface StaleMemory {
  readonly space: string;
  readonly ref: string;
  readonly at: number;
  readonly role: string;
  readonly branch: string | undefined;
  readonly commit: string;
  readonly root: string;
  readonly text: string;
  readonly files: readonly FileCheck[];
}

interface StaleProject {
  readonly space: string;
  /** The newest first. */
  readonly memories: readonly StaleMemory[];
}

interface Found {
  readonly stale: readonly StaleMemory[];
  readonly checked: number;
  readonly unknown: number;
}

const NOTHING: Found = { stale: [], checked: 0, unknown: 0 };

export async function listStale(
  options: StaleOptions,
  context: CommandContext,
  openStore: OpenStore,
): Promise<void> {
  const limit = limitOf(options.limit, LIMIT);
  const { terminal } = context;
  const found = await withStore(context, openStore, async ({ code }) => {
    if (code === undefined) return undefined;
    const checker = new CodeChecker(code.reader, dataFolder(context.environment));
    return findStale(code.provenance, checker, { space: options.space });
  });
  const { stale, checked, unknown } = found ?? NOTHING;
  const newest = stale.toSorted((a, b) => b.at - a.at).slice(0, limit);
  const projects = byProject(newest);
  if (options.json === true) terminal.json(projects);
  else {
    const names = spaceNames(
      dataFolder(context.environment),
      projects.map(({ space }) => space),
    );
    print(projects, names, terminal);
  }
  if (found === undefined) {
    terminal.note('Unknown: a memory service stores neither commits nor files.');
    return;
  }
  const more = stale.length - newest.length;
  if (more > 0) terminal.note(`And ${more} more: --limit ${Math.min(stale.length, LIMIT.max)}`);
  if (unknown > 0)
    terminal.note(`Unknown: ${unknown}. Their files are missing, or could not be read.`);
  if (stale.length === 0) {
    terminal.note(`Memories checked: ${checked}. Their files have not changed.`);
  }
}

interface Scope {
  readonly space: string | undefined;
  /** Pages of two hundred exchanges, the oldest first. */
  readonly pagesMax?: number;
}

/** Compares the files of each exchange with the folder of its project. */
export async function findStale(
  provenance: ProvenanceStore,
  checker: CodeChecker,
  { space, pagesMax = PAGES_MAX }: Scope,
): Promise<Found> {
  const stale: StaleMemory[] = [];
  let checked = 0;
  let unknown = 0;
  let after = 0;
  for (let page = 0; page < pagesMax; page += 1) {
    const filter = { after, limit: PAGE, ...(space !== undefined && { space }) };
    const held = await provenance.list(filter);
    const withFiles = held.filter(({ files }) => files.length > 0);
    checked += withFiles.length;
    for (const check of await checker.check(withFiles)) {
      if (check.holds === 'unknown') unknown += 1;
      if (check.holds === 'outgrown') stale.push(staleFrom(check));
    }
    after = held.at(-1)?.place ?? after;
    if (held.length < PAGE) break;
  }
  return { stale, checked, unknown };
}

function staleFrom({ held, files }: CodeCheck): StaleMemory {
  const { record, commit, root } = held;
  const { ref, at, role, branch, space } = record;
  const text = oneLine(record.text, TEXT_CHARS_MAX);
  const changed = files.filter(({ state }) => state === 'changed' || state === 'gone');
  return { space, ref, at, role, branch, commit, root, text, files: changed };
}

/** The project of the newest one first. */
function byProject(stale: readonly StaleMemory[]): readonly StaleProject[] {
  return [...new Set(stale.map(({ space }) => space))].map((space) => ({
    space,
    memories: stale.filter((one) => one.space === space),
  }));
}

function print(projects: readonly StaleProject[], names: SpaceNames, terminal: Terminal): void {
  const columns = terminal.columns(Infinity);
  const out = (text: string, indent: string): void => {
    for (const line of wrapped(text, columns, indent)) terminal.out(line);
  };
  for (const [place, { space, memories }] of projects.entries()) {
    if (place > 0) terminal.out('');
    terminal.out(terminal.colors.bold(oneLine(names.of(space), TEXT_CHARS_MAX)));
    for (const { ref, at, text, files } of memories) {
      out(`  ${ref}  ${timeText(at).slice(0, DAY_CHARS)}  ${oneLine(text, LINE_CHARS)}`, '    ');
      for (const file of files) out(`    ${fileText(file)}`, '      ');
    }
  }
}

/** `2026-11-20` */
const DAY_CHARS = 10;
const LINE_CHARS = 80;
