import { type Command, Option } from 'commander';
import type { OtherOptions } from '../clients/other-config.ts';
import { OTHER_CLIENTS } from '../clients/other-clients.ts';
import type { CommandContext } from '../context.ts';
import { isWriting } from './program-client-config.ts';

/** Declares `svc print-config` for the clients of the table: a person runs it, so it may load more code. */
export function addOtherClients(program: Command, context: CommandContext): void {
  const command = program.commands.find((one) => one.name() === 'print-config');
  if (command === undefined) return;
  for (const client of OTHER_CLIENTS) {
    const { name, title, file } = client;
    const sub = command
      .command(name)
      .description(`Print the settings for ${title}`)
      .option('--model <name>', 'the model, for clients that need its name')
      .option('-q, --quiet', 'print no explanations');
    if (typeof file !== 'string') {
      sub
        .option('--write', "change the client's own file instead of printing")
        .option('--undo', 'remove the change of --write');
    } else {
      // Answered with the reason.
      sub.addOption(new Option('--write').hideHelp()).addOption(new Option('--undo').hideHelp());
      sub.addHelpText('after', `\nThere is no --write. ${file}`);
    }
    sub.action(async (options: OtherOptions) => {
      isWriting(options);
      const { configureOther } = await import('../clients/other-config.ts');
      await configureOther(client, options, context);
    });
  }
}
