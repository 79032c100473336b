import { CLIENT_COMMANDS } from './client-commands.ts';
import { declareAll, runProgram } from './program.ts';

/**
 * Runs only `svc print-config` and `svc config`, from one CommonJS file. A client asks for its token at every start
 * and in between, and each file that Node loads takes time. `bin/svc.js` selects this file.
 */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, declareAll(CLIENT_COMMANDS));
}
