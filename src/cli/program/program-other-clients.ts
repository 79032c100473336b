import type { Command } from 'commander';
import type { ConnectOptions } from '../clients/connect.ts';
import type { OtherOptions } from '../clients/other-config.ts';
import { OTHER_CLIENTS } from '../clients/other-clients.ts';
import type { CommandContext } from '../context.ts';
import { scriptPath } from './program-start.ts';
import type { Finish } from './program.ts';

/** Declares `svc print-config` for the clients of the table: a person runs it, so it may load more code. */
export function addOtherClients(program: Command, context: CommandContext): void {
  const command = program.commands.find((one) => one.name() === 'print-config');
  if (command === undefined) return;
  for (const client of OTHER_CLIENTS) {
    const { name, title } = client;
    command
      .command(name)
      .description(`Print the settings for ${title}`)
      .option('--model <name>', 'the model, for clients that need its name')
      .option('-q, --quiet', 'print no explanations')
      .action(async (options: OtherOptions) => {
        const { printOther } = await import('../clients/other-config.ts');
        await printOther(client, options, context);
      });
  }
}

/** Declares `svc connect` and `svc disconnect`. */
export function addConnect(program: Command, context: CommandContext, finish: Finish): void {
  program
    .command('connect')
    .description("Change a client's own settings, so that it always uses svc")
    .argument('<name>', 'claude, codex, opencode, pi, qwen or continue')
    .option('--model <name>', 'the model, for clients whose settings name one')
    .option(
      '--openai-name',
      'for codex: name the provider OpenAI, if it is OpenAI; codex then marks typed text',
    )
    .option('-y, --yes', 'do not ask; required without a terminal')
    .option('-q, --quiet', 'print problems only')
    .addHelpText(
      'after',
      `
svc shows the change and asks first. The rest of the file stays, and svc keeps a copy of the file from
before. The file holds no token: the client asks svc for it, and that command starts the proxy if none runs.

Examples:
  $ svc connect claude
  $ svc connect codex --yes
  $ svc disconnect claude`,
    )
    .action(async (name: string, options: ConnectOptions) => {
      const { connect } = await import('../clients/connect.ts');
      const parts = { script: scriptPath(), confirm: await confirmIfAsked() };
      finish(await connect(name, options, context, parts));
    });
  program
    .command('disconnect')
    .description("Remove svc from a client's own settings, as they were before")
    .argument('<name>', 'claude, codex, opencode, pi, qwen or continue')
    .option('-y, --yes', 'do not ask; required without a terminal')
    .option('-q, --quiet', 'print problems only')
    .addHelpText(
      'after',
      `
If the file has not changed since svc connect, every byte is as before. Otherwise only the settings of
svc go.

Examples:
  $ svc disconnect claude`,
    )
    .action(async (name: string, options: ConnectOptions) => {
      const { disconnect } = await import('../clients/connect.ts');
      finish(await disconnect(name, options, context, await confirmIfAsked()));
    });
}

/** Undefined where nobody can answer. */
async function confirmIfAsked() {
  const { confirmer, isAsked } = await import('./confirmer.ts');
  return isAsked() ? confirmer(true) : undefined;
}
