import type { CommandContext } from '../../../src/cli/context.ts';
import { type Declare, runProgram } from '../../../src/cli/program/program.ts';
import { addServiceCommands } from './program/program-service.ts';

/** The first and last lines of `svc-service --help`. */
export const SERVICE_PROGRAM = {
  name: 'svc-service',
  description: 'A service that you run: shared memory, and one address for model requests.',
  start: `  $ svc-service init
  $ svc-service start`,
} as const;

/** Runs a command line (without node and script) and resolves with the exit code. */
export function run(argv: readonly string[], context?: CommandContext): Promise<number> {
  return runProgram(argv, declareServiceCommands, SERVICE_PROGRAM, context);
}

export const declareServiceCommands: Declare = (program, context, finish) => {
  addServiceCommands(program, context, finish);
  program
    .command('completion')
    .description('Print a completion script for your shell')
    .argument('[shell...]', 'bash, zsh or fish')
    .option('--after', 'print the words that may follow other words, as the scripts ask')
    .addHelpText('after', '\nExamples:\n  $ eval "$(svc-service completion bash)"')
    .action(async (words: readonly string[], { after }: { readonly after?: boolean }) => {
      const { printCompletion, printNext } = await import('../../../src/cli/program/completion.ts');
      if (after === true) await printNext(words, program, context);
      else printCompletion(words[0], program, context.terminal);
    });
};
