import { dataFolder } from '../adapters/files/own-folders.ts';
import { MemoryError } from '../core/errors.ts';
import { memoryFailure } from './cli-error.ts';
import type { CliStore } from './compose-store.ts';
import type { CommandContext } from './context.ts';

/** `log`: the request log on this machine. `memory`: also the memories, here or in a memory service. */
type Wanted = 'log' | 'memory';

/** Opens the store for a command. `isReader`: the command only reads, so no store is created. */
export async function openStore(
  context: CommandContext,
  wanted: Wanted,
  isReader = false,
): Promise<CliStore> {
  const { environment, terminal, openStore: open } = context;
  if (open === undefined) throw new Error('This command has no store.');
  const report = (line: string): void => terminal.warn(line);
  const where = wanted === 'memory' ? { environment } : {};
  return open(dataFolder(environment), { ...where, isReader, report });
}

/** Opens the store, runs `work` with it, and closes it. Throws a CliError for an error of the memory. */
export async function withStore<T>(
  context: CommandContext,
  work: (store: CliStore) => Promise<T>,
  wanted: Wanted = 'memory',
  isReader = false,
): Promise<T> {
  const store = await openStore(context, wanted, isReader);
  try {
    return await work(store);
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error;
    throw memoryFailure(error);
  } finally {
    await store.close();
  }
}

/** Does the same as withStore() for `work` that only reads the memories. */
export function readStore<T>(
  context: CommandContext,
  work: (store: CliStore) => Promise<T>,
): Promise<T> {
  return withStore(context, work, 'memory', true);
}

/** Does the same as withStore() for `work` that only reads the request log. */
export function readLog<T>(
  context: CommandContext,
  work: (store: CliStore) => Promise<T>,
): Promise<T> {
  return withStore(context, work, 'log', true);
}

/** Deadline of a command's call to the memory, in milliseconds. A memory that takes longer counts as down. */
export const WAIT_MS = 10_000;

export function deadline(): AbortSignal {
  return AbortSignal.timeout(WAIT_MS);
}
