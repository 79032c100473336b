import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import type { UiOptions } from '../ui/ui.ts';
import { scriptPath } from './program-start.ts';

/** Declares `svc ui`. */
export function addUi(program: Command, context: CommandContext): void {
  program
    .command('ui')
    .description('Show a page with what was sent, what was remembered and what it saved')
    .option('--open', 'open it in your browser')
    .option('--print', 'print the link and nothing else')
    .addHelpText(
      'after',
      `
Examples:
  $ svc ui
  $ svc ui --open
  $ svc ui --print

It prints a link to a page of the running proxy, and starts one where none runs. The link is good once,
for a minute. The page closes after an hour without use. "ui": false in config.json turns it off.`,
    )
    .action(async (options: UiOptions) => {
      const { showUi } = await import('../ui/ui.ts');
      await showUi(options, context, { script: scriptPath(), platform: process.platform });
    });
}
