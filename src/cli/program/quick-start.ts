import { declareAll, runProgram } from './program.ts';
import { START_COMMAND } from './start-command.ts';

/**
 * `svc start` alone, in one CommonJS file. Finding, reading and linking 40 modules took half of the
 * time from the command to the first served request. `bin/svc.js` chooses.
 */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, declareAll([START_COMMAND]));
}
