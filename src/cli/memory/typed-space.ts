import { dataFolder } from '../../adapters/files/data-folder.ts';
import { spaceNames } from '../../adapters/projects/registry.ts';
import { CliError } from '../cli-error.ts';
import type { OpenStore } from '../compose-store.ts';
import type { CommandContext } from '../context.ts';
import { withStore } from './memory.ts';

/**
 * The whole name of the space that a person typed: `shop` means the project shop, if there is one. A name
 * that no space has is the name of a new space. Throws CliError where several projects have the name.
 */
export async function typedSpace(
  typed: string,
  context: CommandContext,
  openStore: OpenStore,
): Promise<string> {
  // No short name has a slash: a whole name costs no look into the store.
  if (typed === '' || typed.includes('/')) return typed;
  const held = await withStore(
    context,
    openStore,
    async ({ desk }) => (await desk?.shelves()) ?? [],
  );
  const names = spaceNames(
    dataFolder(context.environment),
    held.map(({ space }) => space),
  );
  const found = names.find(typed).toSorted();
  if (found.length < 2) return found[0] ?? typed;
  throw new CliError(
    `Several projects are called ${typed}: ${found.join(', ')}.`,
    'Give the whole name. The folders are in: svc memory spaces',
    2,
  );
}
