import { runHook } from '../hook/hook.ts';
import { IN_BACKGROUND } from '../hook/hook-call.ts';

/** Deadline of a hook in the background, in milliseconds. It may wait for a lock, which a backup can hold for long. */
const BACKGROUND_MS = 60_000;

/**
 * Runs `svc hook`, and no other command. This is the entry of a bundle, a CommonJS file without the command-line
 * parser: a client runs it at each prompt and each tool call, while the user waits. `bin/svc.js` selects it.
 */
export function run([client = '', event = '', way]: readonly string[]): Promise<void> {
  const { env: environment, stdin, stdout } = process;
  return runHook(
    { client, event, stdin, environment },
    {
      ...(way === IN_BACKGROUND && { wholeMs: BACKGROUND_MS }),
      print: (answer) => new Promise((done) => stdout.write(`${answer}\n`, () => done())),
    },
  );
}
