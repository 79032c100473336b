import { groupBy } from '../../core/bytes/batches.ts';
import { dayName } from '../../core/meter/figures.ts';
import { wholeReference, noSuchReference, nameOf, namesOf } from './named.ts';
import { deadline, readStore } from '../store.ts';
import { lstat } from 'node:fs/promises';
import { readRegistry, spaceNow } from '../../adapters/projects/registry.ts';
import { type FileVerdict, type Holds, holdsNow } from '../../core/memory/outgrown.ts';
import type { Code, HeldProvenance, ProvenanceStore } from '../../ports/provenance.ts';
import type { CliStore } from '../compose-store.ts';
import { oneLine } from '../terminal.ts';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import type { StoredRecord } from '../../ports/memory.ts';
import type { CommandContext, Call } from '../context.ts';
import { count, timeText, limitOf, LIST_LIMIT, type ListOptions } from '../listing.ts';

/**
 * Compares the files of memories with the present files in the folders of their projects, for `svc memory get
 * --origin`, `svc memory list --stale` and the remarks below memories.
 */

/**
 * Deadline of comparing the files of one memory, in milliseconds. A few thousand files take a second; a disk may hang.
 * The state of a file that is not compared by then is unknown.
 */
const CHECK_MS = 10_000;

interface FileCheck {
  readonly path: string;
  readonly state: FileVerdict;
}

interface CodeCheck {
  readonly held: HeldProvenance;
  readonly files: readonly FileCheck[];
  readonly holds: Holds;
}

export class CodeChecker {
  readonly #code: Code;
  readonly #dataFolder: string;
  /** The folders that #findRoot() has found, by space and recorded folder. */
  readonly #roots = new Map<string, Promise<string>>();

  constructor(code: Code, folder: string) {
    this.#code = code;
    this.#dataFolder = folder;
  }

  /** Checks the files of each memory. The results are in the order of `all`. */
  async check(all: readonly HeldProvenance[]): Promise<readonly CodeCheck[]> {
    const checks: CodeCheck[] = [];
    // oxlint-disable-next-line no-await-in-loop -- Parallel checks would wait for the same disk.
    for (const held of all) checks.push(await this.#checkOne(held));
    return checks;
  }

  async #checkOne(held: HeldProvenance): Promise<CodeCheck> {
    const root = await this.#rootOf(held);
    const verdicts = await this.#code.compare(root, held.files, CHECK_MS);
    const files = held.files.map(({ path }, at) => ({ path, state: verdicts[at] ?? 'unknown' }));
    return { held, files, holds: holdsNow(verdicts, root === held.root) };
  }

  /**
   * Returns the folder of the exchange; if that folder is gone, the newest existing folder of the project, if any.
   */
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

/** Bound on the files that a remark names; more would not help the reader. */
const NAMED_MAX = 3;
const PATH_CHARS_MAX = 200;

/**
 * Returns a remark about the files of a memory that have changed since it was stored, with the names of up to
 * NAMED_MAX; undefined if none has, or if svc does not know. Never rejects.
 */
export type ChangeReader = (ref: string) => Promise<string | undefined>;

/** Returns a reader that compares the files of this store's memories. `folder`: svc's data folder. */
export function changeReader({ code }: Pick<CliStore, 'code'>, folder: string): ChangeReader {
  if (code === undefined) return async () => undefined;
  const checker = new CodeChecker(code.reader, folder);
  const remarkFor = async (ref: string): Promise<string | undefined> => {
    const [check] = await checker.check(await code.provenance.list({ refs: [ref], limit: 1 }));
    return check?.holds === 'outgrown' ? remarkOf(changedOf(check.files)) : undefined;
  };
  // If the files cannot be checked, the memory is shown without a remark.
  return (ref) => remarkFor(ref).catch(() => undefined);
}

function changedOf(files: readonly FileCheck[]): readonly FileCheck[] {
  return files.filter(({ state }) => state === 'changed' || state === 'gone');
}

function remarkOf(changed: readonly FileCheck[]): string {
  const names = changed.slice(0, NAMED_MAX).map(({ path }) => oneLine(path, PATH_CHARS_MAX));
  const more = changed.length - names.length;
  const others = more > 0 ? ` and ${more} more` : '';
  return `[svc: files changed since this was said: ${names.join(', ')}${others}. Read them before you rely on it.]`;
}

/** Where a memory comes from: commit, folder and files of its exchange, as far as svc knows them. */
interface Origin {
  readonly commit?: string;
  readonly root?: string;
  readonly files?: readonly FileCheck[];
  readonly holds: Holds;
  readonly why: string;
}

/** Runs `svc memory get --origin`: shows where a memory comes from, and whether its files are unchanged. */
export async function showMemory(
  request: { readonly ref: string; readonly json?: boolean | undefined },
  context: CommandContext,
): Promise<void> {
  const shown = await readStore(context, async (store) => {
    const { memory } = store;
    const ref = await wholeReference(memory, request.ref);
    const record = await memory.retrieve({ ref }, deadline());
    const folder = dataFolder(context.environment);
    return record && { record, origin: await originOf(record, store, folder) };
  });
  if (shown === undefined) throw noSuchReference(request.ref);
  const { record, origin } = shown;
  if (request.json === true) context.terminal.json({ ...record, ...origin });
  else printOrigin(record, origin, context);
}

async function originOf(record: StoredRecord, { code }: CliStore, folder: string): Promise<Origin> {
  if (code === undefined) {
    return { holds: 'unknown', why: 'a memory service stores neither the commit nor the files' };
  }
  const found = await code.provenance.list({ refs: [record.ref], limit: 8 });
  const held = found.find((one) => one.record.space === record.space);
  if (held === undefined) {
    return { holds: 'unknown', why: 'svc knows neither its commit nor its files' };
  }
  const [check] = await new CodeChecker(code.reader, folder).check([held]);
  const { files = [], holds = 'unknown' } = check ?? {};
  const { commit, root } = held;
  return { commit, root, files, holds, why: reasonFor(holds, files) };
}

function reasonFor(holds: Holds, files: readonly FileCheck[]): string {
  const all = count(files.length, 'file');
  if (files.length === 0) return 'its exchange named no file of the folder';
  if (holds === 'yes') return `${all} unchanged since then`;
  if (holds === 'outgrown') return `of ${all} ${changedOf(files).length} changed since`;
  return 'its files are missing, or could not be read';
}

const HOLDS: Readonly<Record<Holds, string>> = {
  yes: 'yes',
  outgrown: 'not for sure',
  unknown: 'unknown',
};

const NAME_CHARS = 9;

function printOrigin(
  record: StoredRecord,
  { commit = '', root = '', files = [], holds, why }: Origin,
  context: CommandContext,
): void {
  const { ref, at, role, conversation, client, space, branch = '' } = record;
  const [first = '', ...others] = files.map(fileText);
  const rows: readonly (readonly [name: string, value: string])[] = [
    ['memory', ref],
    ['text', text(record.text)],
    ['said', `${timeText(at)}, ${role}`],
    ['session', text(conversation)],
    ['client', text(client)],
    ['project', text(nameOf(space, context))],
    ['branch', text(branch)],
    ['commit', commit],
    ['folder', text(root)],
    ['files', first],
    ...others.map((file) => ['', file] as const),
    ['holds', `${HOLDS[holds]}: ${why}`],
  ];
  for (const [name, value] of rows) {
    const row = `${name.padEnd(NAME_CHARS)} ${value === '' ? 'unknown' : value}`;
    context.terminal.row(row, ' '.repeat(NAME_CHARS + 1));
  }
}

function text(value: string): string {
  return oneLine(value, VALUE_CHARS_MAX);
}

const VALUE_CHARS_MAX = 300;

/** Returns a file with its state: `src/pool.ts (changed)`; only the path if the file is the same. */
function fileText({ path, state }: FileCheck): string {
  return state === 'same' ? text(path) : `${text(path)} (${state})`;
}

const PAGE = 200;
/** Bound on pages of PAGE exchanges: a million exchanges, more than anybody has. */
const PAGES_MAX = 5_000;
const TEXT_CHARS_MAX = 200;

type StaleMemory = ReturnType<typeof staleFrom>;

export async function listStale({ options, context }: Call<ListOptions>): Promise<void> {
  const limit = limitOf(options.limit, LIST_LIMIT);
  const { terminal } = context;
  const found = await readStore(context, async ({ code }) => {
    if (code === undefined) return undefined;
    const checker = new CodeChecker(code.reader, dataFolder(context.environment));
    return findStale(code.provenance, checker, { space: options.space });
  });
  const { stale, checked, unknown } = found ?? { stale: [], checked: 0, unknown: 0 };
  const newest = stale.toSorted((a, b) => b.at - a.at).slice(0, limit);
  const projects = byProject(newest);
  if (options.json === true) terminal.json(projects);
  else printStale(projects, context);
  if (found === undefined) {
    terminal.note('Unknown: a memory service stores neither commits nor files.');
    return;
  }
  const more = stale.length - newest.length;
  if (more > 0)
    terminal.note(`And ${more} more: --limit ${Math.min(stale.length, LIST_LIMIT.max)}`);
  if (unknown > 0)
    terminal.note(`Unknown: ${unknown}. Their files are missing, or could not be read.`);
  if (stale.length === 0) {
    terminal.note(`Memories checked: ${checked}. Their files have not changed.`);
  }
}

/**
 * Returns the memories whose files have changed. `pagesMax`: bound on the pages of PAGE exchanges that are checked,
 * oldest first. `checked` and `unknown` count exchanges.
 */
export async function findStale(
  provenance: ProvenanceStore,
  checker: CodeChecker,
  { space, pagesMax = PAGES_MAX }: { space: string | undefined; pagesMax?: number },
) {
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

function staleFrom({ held, files }: CodeCheck) {
  const { record, commit, root } = held;
  const { ref, at, role, branch, space } = record;
  const said = oneLine(record.text, TEXT_CHARS_MAX);
  return { space, ref, at, role, branch, commit, root, text: said, files: changedOf(files) };
}

/** Groups memories by project. `stale`: newest first. The project of the newest memory comes first. */
function byProject(stale: readonly StaleMemory[]) {
  return [...groupBy(stale, ({ space }) => space)].map(([space, memories]) => ({
    space,
    memories,
  }));
}

function printStale(projects: ReturnType<typeof byProject>, context: CommandContext): void {
  const { terminal } = context;
  const names = namesOf(projects, context);
  for (const [place, { space, memories }] of projects.entries()) {
    if (place > 0) terminal.out('');
    terminal.out(terminal.colors.bold(oneLine(names.of(space), TEXT_CHARS_MAX)));
    for (const { ref, at, text: said, files } of memories) {
      terminal.row(`  ${ref}  ${dayName(at)}  ${oneLine(said, LINE_CHARS)}`, '    ');
      for (const file of files) terminal.row(`    ${fileText(file)}`, '      ');
    }
  }
}

const LINE_CHARS = 80;
