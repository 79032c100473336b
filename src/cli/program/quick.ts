import { CLIENT_COMMANDS } from './client-commands.ts';
import { declareAll, runProgram } from './program.ts';

/**
 * Runs `svc config`, `svc print-config claude` and `codex`, and `svc --version`, and no other commands. This is the
 * entry of a bundle, a CommonJS file: a client asks for its token often, and each file that Node loads takes time.
 * `bin/svc.js` selects it.
 */
export function run(argv: readonly string[]): Promise<number> {
  return runProgram(argv, declareAll(CLIENT_COMMANDS));
}
