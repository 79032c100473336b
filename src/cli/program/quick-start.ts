import { declareAll, runProgram } from './program.ts';
import { START_COMMAND } from './start-command.ts';

/**
 * Runs `svc start`, and no other command. This is the start of a bundle of one CommonJS file: loading 40 modules took
 * half of the time to the first request. `bin/svc.js` selects it.
 */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, declareAll([START_COMMAND]));
}
