import { type CliCommand, declareAll, type Declare, runProgram } from './program/program.ts';
import type { OpenStore } from './compose-store.ts';
import type { Call, Confirm } from './context.ts';
import { COMMANDS } from './program/commands.ts';

/** The command line. */

/** Runs one command line (without node and script) and resolves with the exit code. */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, declareCommands, undefined, { asker, openStore });
}

/** Only then the store's code is read. */
const openStore: OpenStore = async (folder, options) =>
  (await import('./compose-store.ts')).openStoreForCli(folder, options);

function asker(isDefault = false): Confirm | undefined {
  const { stdin: input, stderr: output } = process;
  if (!input.isTTY || !output.isTTY) return undefined;
  return async (message) => {
    const { Prompts } = await import('./setup/wizard-prompts.ts');
    const prompts = new Prompts({ input, output });
    // Ctrl-C means no. Questions go to stderr.
    return prompts.confirm({ message, default: isDefault }).catch(() => false);
  };
}

/** All commands with their flags. */
export const declareCommands: Declare = (program, context, finish) => {
  const completion: CliCommand = {
    name: 'completion',
    group: 'programs',
    description: 'Print a completion script for your shell',
    args: { '[shell]': 'bash, zsh or fish' },
    options: {
      '--values <kind>': 'list values instead, as the scripts ask: spaces or upstreams',
    },
    examples: [
      `echo 'eval "$(svc completion bash)"' >> ~/.bashrc`,
      `echo 'eval "$(svc completion zsh)"' >> ~/.zshrc`,
      'svc completion fish > ~/.config/fish/completions/svc.fish',
    ],
    async run({ args: [shell], options }: Call<{ readonly values?: string }>) {
      const { printCompletion, printValues } = await import('./program/completion.ts');
      if (options.values !== undefined) await printValues(options.values, context);
      else printCompletion(shell, program, context.terminal);
    },
  };
  const help: CliCommand = {
    name: 'help',
    group: 'more',
    description: 'Explain a command, or print a page of the documentation',
    args: { '[words...]': 'a command, or the name of a page: modes, hooks, privacy, …' },
    more: 'Without words it prints the help of svc. A name that does not exist prints the names of all pages.',
    examples: ['svc help memory get', 'svc help modes', 'svc help states | less'],
    async run({ args }) {
      (await import('./program/help.ts')).printHelp(args, program, context.terminal);
    },
  };
  declareAll([...COMMANDS, help, completion])(program, context, finish);
};
