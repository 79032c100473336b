import { runHook } from '../hook/hook.ts';
import { IN_BACKGROUND } from '../hook/hook-call.ts';

/** How long a background hook waits for a lock, which a backup may hold. */
const BACKGROUND_MS = 60_000;

/**
 * Runs only `svc hook`, from one CommonJS file without the command-line parser: a client runs it at each prompt and
 * each tool call, and the user waits. `bin/svc.js` selects this file.
 */
export function run([client = '', event = '', way]: readonly string[]): Promise<void> {
  const { env: environment, stdin, stdout } = process;
  return runHook(
    { client, event, stdin, environment, script: process.argv[1] ?? '' },
    {
      ...(way === IN_BACKGROUND && { wholeMs: BACKGROUND_MS }),
      print: (answer) => new Promise((done) => stdout.write(`${answer}\n`, () => done())),
    },
  );
}
