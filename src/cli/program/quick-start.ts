import { runProgram } from './program.ts';
import { addStart } from './program-start.ts';

/**
 * `svc start` alone, in one CommonJS file. Finding, reading and linking 40 modules took half of the
 * time from the command to the first served request. `bin/svc.js` chooses.
 */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, addStart);
}
