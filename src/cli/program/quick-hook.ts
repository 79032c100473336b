import { runHook } from '../hook/hook.ts';
import { IN_BACKGROUND } from '../hook/hook-call.ts';

/** Deadline of a hook in the background, which waits for locks. A backup may hold one for long. */
const BACKGROUND_MS = 60_000;

/**
 * Runs `svc hook`, and no other command. This is the start of a bundle of one CommonJS file without the command-line
 * parser, because a client runs it at each prompt and each tool call, and the user waits. `bin/svc.js` selects it.
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
