import { declareAll, runProgram } from './program.ts';
import { START_COMMAND } from './start-command.ts';

/**
 * Runs only `svc start`, from one CommonJS file: loading 40 modules took half of the time from the command to the
 * first served request. `bin/svc.js` selects this file.
 */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, declareAll([START_COMMAND]));
}
