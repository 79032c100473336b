import { runProgram } from './program.ts';
import { addStart } from './program-start.ts';

/**
 * `svc start` alone, in one CommonJS file: between a person and the first request served, half of
 * the time went into finding, reading and linking 40 modules. `bin/svc.js` chooses.
 */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, addStart);
}
