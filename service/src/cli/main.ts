import type { CommandContext } from '../../../src/cli/context.ts';
import {
  completionOf,
  type Declare,
  declareAll,
  runProgram,
} from '../../../src/cli/program/program.ts';
import { SERVICE_COMMANDS } from './program/program-service.ts';

/** The texts in `svc-service --help` besides its commands. `start`: the first commands for a new user. */
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
  const examples = ['eval "$(svc-service completion bash)"'];
  const completion = completionOf(program, context, { examples });
  declareAll([...SERVICE_COMMANDS, completion])(program, context, finish);
};
