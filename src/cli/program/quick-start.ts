import { declareAll, runProgram } from './program.ts';
import { START_COMMAND } from './start-command.ts';

/**
 * Runs `svc start`, and no other command. This is the entry of a bundle, a CommonJS file: to load 40 files instead
 * would double the time to the first request. `bin/svc.js` selects it.
 */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, declareAll([START_COMMAND]));
}
