import type { Command } from 'commander';
import type { CommandContext } from '../context.ts';
import type { UiOptions } from '../ui/ui.ts';
import { scriptPath } from './program-start.ts';

/** Declares `svc ui`. */
export function addUi(program: Command, context: CommandContext): void {
  program
    .command('ui')
    .description('Open a page with requests, memories and savings')
    .option('--open', 'open the page in your browser')
    .option('--print', 'print only the link')
    .addHelpText(
      'after',
      `
Examples:
  $ svc ui
  $ svc ui --open
  $ svc ui --print

The command prints a link to a page of the running proxy, and starts a proxy if none runs. The link works
once, within a minute. The page ends after an hour without use. "ui": false in config.json turns it off.`,
    )
    .action(async (options: UiOptions) => {
      const { showUi } = await import('../ui/ui.ts');
      await showUi(options, context, { script: scriptPath(), platform: process.platform });
    });
}
