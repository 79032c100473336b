import { dataFolder } from '../adapters/files/own-folders.ts';
import { MemoryError } from '../core/errors.ts';
import { memoryFailure } from './cli-error.ts';
import type { CliStore } from './compose-store.ts';
import type { CommandContext } from './context.ts';

/** Opens the store of a command's context. */

/** `log`: this machine's request log. `memory`: also the memories, wherever the configuration says they are. */
type Wanted = 'log' | 'memory';

/** Opens the store. `isReader`: see StoreOptions. */
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

/** Runs `work` with the memories, and closes the store. */
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

/** Runs `work`, which only reads, on the memories. */
export function readStore<T>(
  context: CommandContext,
  work: (store: CliStore) => Promise<T>,
): Promise<T> {
  return withStore(context, work, 'memory', true);
}

/** Runs `work`, which only reads, on the request log. */
export function readLog<T>(
  context: CommandContext,
  work: (store: CliStore) => Promise<T>,
): Promise<T> {
  return withStore(context, work, 'log', true);
}

/** Deadline of a call: the store answers in milliseconds, and a slower hosted one is down. */
export const WAIT_MS = 10_000;

export function deadline(): AbortSignal {
  return AbortSignal.timeout(WAIT_MS);
}
