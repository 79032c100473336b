import { deadline, readStore, withStore } from '../store.ts';
import { realpath } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import {
  changeRegistry,
  readWholeRegistry,
  type Registry,
  spaceNow,
  withForward,
} from '../../adapters/projects/registry.ts';
import { findRepository } from '../../adapters/projects/repository.ts';
import { isSpace } from '../../core/request/space.ts';
import type { SpaceChange } from '../../local/ui/memory-calls.ts';
import { type Memory, REST_MS } from '../../ports/memory.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext, Call } from '../context.ts';
import { printable } from '../terminal.ts';
import { typedSpace, projectOf, wrongSpace, namesOf, nameOf } from './named.ts';
import { isKept, pagesOf } from './record-writer.ts';

/** Runs `svc memory spaces`, `on` and `off`: lists and moves spaces, and switches memory for a project. */

const PAGE = 500;
/** What an error calls the name of a space, which is an argument here and an option in other commands. */
const NAMED = 'The name of a space';
/** Bound on pages of PAGE memories: half a million, more than anybody has. */
const PAGES_MAX = 1000;

export async function listSpaces(call: Call<{ readonly json?: boolean }>): Promise<void> {
  const { options, context } = call;
  const counts = await readStore(context, ({ memory }) => countSpaces(memory));
  const registry = await readWholeRegistry(dataFolder(context.environment));
  const { projects, joined } = registry;
  const now = (space = ''): string => spaceNow(registry, space);
  const names = new Set([...counts.keys(), ...projects.map(({ space }) => now(space))]);
  const rows = [...names].toSorted().map((space) => ({
    space,
    memories: counts.get(space) ?? 0,
    folders: [
      ...projects.filter((one) => now(one.space) === space).flatMap(({ folders }) => folders),
      ...Object.keys(joined).filter((folder) => now(joined[folder]) === space),
    ],
  }));
  if (options.json === true) {
    context.terminal.json(rows);
    return;
  }
  const shown = namesOf(names, context);
  for (const { space, memories, folders } of rows) {
    // The name of a folder may have control characters and line ends.
    const row = [shown.of(space), String(memories), folders.at(-1) ?? ''].join('  ').trimEnd();
    context.terminal.row(printable(row).replaceAll(/[\n\t]/g, '\ufffd'), '    ');
  }
  if (rows.length === 0) context.terminal.note('No space holds a memory yet.');
}

/** Runs `svc memory spaces join`: assigns the project of a folder to a space. */
export async function joinSpace({ args, context }: Call): Promise<void> {
  const [typed = '', folder = process.cwd()] = args;
  const space = await typedSpace(typed, context);
  if (!isSpace(space)) throw wrongSpace(NAMED);
  const root = (await findRepository(folder))?.root ?? (await realpath(folder).catch(noFolder));
  await changeRegistry(dataFolder(context.environment), ({ joined, ...rest }) => ({
    ...rest,
    joined: { ...joined, [root]: space },
  }));
  context.terminal.note(`${root} now belongs to ${typed}.`);
  const shelves = await readStore(context, async ({ desk }) => desk?.shelves());
  if (shelves?.some((shelf) => shelf.space === space) === false) {
    context.terminal.note(`  No memory is in ${typed} yet. The names in use: svc memory spaces`);
  }
}

/**
 * Runs `svc memory off` and `on`: switches memory for the project of a folder, from the next request on. The registry
 * of projects stores the choice; the proxy and the hooks get it as `Project.isMemoryOff`.
 */
export async function switchMemory(
  { args: [folder = process.cwd()], context }: Call,
  isOff: boolean,
): Promise<void> {
  const { environment, terminal } = context;
  const data = dataFolder(environment);
  await realpath(folder).catch(noFolder);
  const space = await projectOf(folder, environment);
  await changeRegistry(data, (now) => {
    const others = now.off.filter((one) => spaceNow(now, one) !== space);
    return { ...now, off: isOff ? [...others, space] : others };
  });
  const name = nameOf(space, context);
  if (!isOff) {
    terminal.note(`Memory is on for ${name}.`);
    return;
  }
  terminal.note(`Memory is off for ${name}: svc recalls nothing new here and stores nothing.`);
  terminal.note(
    'Memories that a running conversation already contains stay in it if it depends on them.',
  );
  terminal.note('Turn memory on again with: svc memory on');
}

/** Returns the names of projects for which memory is off. */
export async function projectsWithoutMemory(context: CommandContext): Promise<readonly string[]> {
  const registry = await readWholeRegistry(dataFolder(context.environment));
  const off = registry.off.map((space) => spaceNow(registry, space));
  const names = namesOf(off, context);
  return [...new Set(off)].map((space) => names.of(space));
}

function noFolder(): never {
  throw new CliError('svc finds no such folder.', 'Name an existing folder.');
}

/** Renames a space, or merges it into another one. `typed`: the names as the user typed them. */
export async function moveSpace(typed: SpaceChange, context: CommandContext): Promise<void> {
  const change = {
    from: await typedSpace(typed.from, context),
    to: await typedSpace(typed.to, context),
    isMerge: typed.isMerge,
  };
  const { moved, left } = await withStore(context, ({ memory }) =>
    moveSpaceIn(memory, dataFolder(context.environment), { ...change, typed }),
  );
  context.terminal.note(`Moved to ${typed.to}: ${moved}.`);
  if (left > 0) {
    context.terminal.warn(
      `Some of them were forgotten in ${typed.to}, so they stay in ${typed.from} (${left}).`,
    );
  }
}

/**
 * Moves the memories and the project of a space. It changes the registry of projects first: from then on the project
 * uses the new space, and recall reads the old one too, so recall finds what is not moved yet. After an interruption
 * the same call moves the rest. `typed`: the names for messages. `left`: the memories that stay, counted up to PAGE.
 */
export async function moveSpaceIn(
  memory: Memory,
  folder: string,
  {
    from,
    to,
    isMerge,
    typed = { from, to },
  }: SpaceChange & { typed?: Omit<SpaceChange, 'isMerge'> },
): Promise<{ readonly moved: number; readonly left: number }> {
  if (!isSpace(from) || !isSpace(to)) throw wrongSpace(NAMED);
  if (from === to) {
    throw new CliError(
      `Both names are the space ${typed.to}.`,
      'Give another name. List them with: svc memory spaces',
      2,
    );
  }
  const registry = await readWholeRegistry(folder);
  const isBegun = registry.forwards[from] === to;
  const [there] = await memory.list({ space: to, limit: 1 }, deadline());
  if (there !== undefined && !isMerge && !isBegun) {
    throw new CliError(
      `${typed.to} already has memories.`,
      `svc memory spaces merge ${typed.from} ${typed.to}`,
    );
  }
  const [first] = await memory.list({ space: from, limit: 1 }, deadline());
  if (first === undefined && !isBegun && !isNamedIn(registry, from)) {
    throw new CliError(`There is no space ${typed.from}.`, 'List them with: svc memory spaces');
  }
  await changeRegistry(folder, (now) => ({
    ...now,
    forwards: withForward(now.forwards, from, to),
  }));
  const moved = await (memory.moveSome === undefined ? moveCopies : moveAll)(memory, from, to);
  const rest = await memory.list({ space: from, limit: PAGE }, deadline());
  return { moved, left: rest.length };
}

function isNamedIn(registry: Registry, space: string): boolean {
  const named = [...registry.projects.map((one) => one.space), ...Object.values(registry.joined)];
  return named.some((one) => spaceNow(registry, one) === space);
}

async function moveAll(memory: Memory, from: string, to: string): Promise<number> {
  let moved = 0;
  for (;;) {
    const some = await memory.moveSome?.({ from, to }, deadline());
    if (some === undefined || some.memories + some.outputs === 0) return moved;
    moved += some.memories;
    await sleep(REST_MS);
  }
}

/**
 * Moves memories in a memory service: stores each page in the other space, and then forgets it in the first one.
 * Memories that were forgotten in the other space stay. Left-out outputs stay too, so a conversation that leaves them
 * out sends them once more.
 */
async function moveCopies(memory: Memory, from: string, to: string): Promise<number> {
  let moved = 0;
  let left = 0;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const records = await memory.list({ space: from, limit: PAGE, offset: left }, deadline());
    if (records.length === 0) break;
    const kept = records.map((record) => ({ ...record, space: to }));
    const states = await memory.capture(kept, deadline());
    if (states.some((state) => state !== 'forgotten' && !isKept(state))) {
      throw new CliError('The memory refused some of them.', 'Check with: svc doctor');
    }
    const refs = records.filter((_, at) => isKept(states[at])).map(({ ref }) => ref);
    left += records.length - refs.length;
    if (refs.length > 0) moved += await memory.forget({ refs, space: from }, deadline());
  }
  return moved;
}

async function countSpaces(memory: Memory): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  let pages = 0;
  for await (const records of pagesOf(memory, { limit: PAGE })) {
    for (const { space } of records) counts.set(space, (counts.get(space) ?? 0) + 1);
    pages += 1;
    if (pages === PAGES_MAX) break;
  }
  return counts;
}
