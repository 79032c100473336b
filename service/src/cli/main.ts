import type { Call, CommandContext } from '../../../src/cli/context.ts';
import {
  type CliCommand,
  type Declare,
  declareAll,
  runProgram,
} from '../../../src/cli/program/program.ts';
import { SERVICE_COMMANDS } from './program/program-service.ts';

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
  const completion: CliCommand = {
    name: 'completion',
    description: 'Print a completion script for your shell',
    args: { '[shell...]': 'bash, zsh or fish' },
    options: { '--after': 'print the words that may follow other words, as the scripts ask' },
    examples: ['eval "$(svc-service completion bash)"'],
    async run({ args, options }: Call<{ readonly after?: boolean }>) {
      const { printCompletion, printNext } = await import('../../../src/cli/program/completion.ts');
      if (options.after === true) await printNext(args, program, context);
      else printCompletion(args[0], program, context.terminal);
    },
  };
  declareAll([...SERVICE_COMMANDS, completion])(program, context, finish);
};
