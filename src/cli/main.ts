import type { Command } from 'commander';
import { CliError } from './cli-error.ts';
import type { CommandContext } from './context.ts';
import { type Declare, runProgram } from './program/program.ts';
import { addClientConfigCommands } from './program/program-client-config.ts';
import { addConnect, addOtherClients } from './program/program-other-clients.ts';
import { addConfigCommands } from './program/program-config.ts';
import { addMemoryCommands } from './program/program-memory.ts';
import { addProxyCommands } from './program/program-proxy.ts';
import { addUi } from './program/program-ui.ts';
import { openStore } from './open-store.ts';

/**
 * The command line. Commands load their own code when they run: looking at the status must not load
 * an HTTP client or a database.
 */

/** Runs one command line (without node and script) and resolves with the exit code. */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, declareCommands);
}

/** All commands with their flags. */
export const declareCommands: Declare = (program, context, finish) => {
  addConfigCommands(program, context, finish);
  addClientConfigCommands(program, context);
  addOtherClients(program, context);
  addConnect(program, context, finish);
  addProxyCommands(program, context, finish);
  addUi(program, context);
  addMemoryCommands(program, context, finish);
  addService(program);
  addCompletion(program, context);
};

/** Says how to get the program of the service, which this package does not contain. */
function addService(program: Command): void {
  program
    .command('service')
    .description('Say how to get svc-service, the program that runs a memory service')
    .argument('[words...]')
    .allowUnknownOption()
    .addHelpText('after', '\nExamples:\n  $ npm install -g svc-service\n  $ svc-service --help')
    .action(() => {
      throw new CliError(
        'The service is a program of its own.',
        'Install it with: npm install -g svc-service. See: svc-service --help',
        2,
      );
    });
}

function addCompletion(program: Command, context: CommandContext): void {
  program
    .command('completion')
    .description('Print a completion script for your shell')
    .argument('[shell]', 'bash, zsh or fish')
    .option('--values <kind>', 'list values instead, as the scripts ask: spaces or upstreams')
    .addHelpText(
      'after',
      `
Examples:
  $ echo 'eval "$(svc completion bash)"' >> ~/.bashrc
  $ echo 'eval "$(svc completion zsh)"' >> ~/.zshrc
  $ svc completion fish > ~/.config/fish/completions/svc.fish`,
    )
    .action(async (shell: string | undefined, { values }: { values?: string }) => {
      if (values !== undefined) {
        const { printValues } = await import('./program/completion-values.ts');
        await printValues(values, context, openStore);
        return;
      }
      const { printCompletion } = await import('./program/completion.ts');
      printCompletion(shell, program, context.terminal);
    });
}
