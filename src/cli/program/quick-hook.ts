import { runHook } from '../hook/hook.ts';
import { IN_BACKGROUND } from '../hook/hook-call.ts';

/** A hook in the background waits so long for a lock: a backup may hold it. */
const BACKGROUND_MS = 60_000;

/**
 * `svc hook` alone, in one CommonJS file and without the reader of command lines: a client runs it at each prompt and
 * each tool, and a person waits for it. `bin/svc.js` chooses.
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
