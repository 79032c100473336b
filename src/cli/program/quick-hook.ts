import { runHook } from '../hook/hook.ts';

/**
 * `svc hook` alone, in one CommonJS file and without the reader of command lines: a client runs it at each prompt and
 * each tool, and a person waits for it. `bin/svc.js` chooses.
 */
export function run([client = '', event = '']: readonly string[]): Promise<void> {
  const { env: environment, stdin, stdout } = process;
  return runHook(
    { client, event, stdin, environment, script: process.argv[1] ?? '' },
    {
      print: (answer) => new Promise((done) => stdout.write(`${answer}\n`, () => done())),
    },
  );
}
