import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import { openStore } from '../open-store.ts';

/** `svc memory spaces` and what it does to them. */
export function addSpaces(memory: Command, context: CommandContext): void {
  const spaces = memory
    .command('spaces')
    .description('List the spaces of the memory, with the folders of their projects')
    .option('--json', 'print a JSON list')
    .action(async (options: { readonly json?: boolean }) => {
      const { listSpaces } = await import('../memory/spaces.ts');
      await listSpaces(options, context, openStore);
    });
  const move = (isMerge: boolean) => async (from: string, to: string) => {
    const { moveSpace } = await import('../memory/spaces.ts');
    await moveSpace({ from, to, isMerge }, context, openStore);
  };
  spaces
    .command('rename')
    .description('Rename a space and assign its project to the new name')
    .argument('<from>')
    .argument('<to>')
    .action(move(false));
  spaces
    .command('merge')
    .description('Move all memories and the project of one space into another')
    .argument('<from>')
    .argument('<to>')
    .action(move(true));
  spaces
    .command('join')
    .description('Assign a folder to a space, if svc cannot prove that it is the same project')
    .argument('<space>')
    .argument('[folder]', 'the folder (default: the current one)')
    .action(async (space: string, folder: string | undefined) => {
      const { joinSpace } = await import('../memory/spaces.ts');
      await joinSpace({ space, folder: folder ?? process.cwd() }, context, openStore);
    });
}
