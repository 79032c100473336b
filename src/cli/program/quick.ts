import { CLIENT_COMMANDS } from './client-commands.ts';
import { declareAll, runProgram } from './program.ts';

/**
 * `svc print-config` and `svc config` alone, in one CommonJS file. A client asks for its token at
 * every start and in between, and pays for each file that Node loads. `bin/svc.js` chooses.
 */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, declareAll(CLIENT_COMMANDS));
}
