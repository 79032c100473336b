import { sessionFacts } from '../compose-statusline.ts';
import { printStatusLine } from '../requests/statusline.ts';
import { Terminal } from '../terminal.ts';

/**
 * `svc statusline` alone, in one CommonJS file and without the reader of command lines: a client runs
 * it several times a second. `bin/svc.js` chooses.
 */
export async function run(): Promise<number> {
  const { env: environment, stdin, stdout, stderr } = process;
  const terminal = new Terminal({ stdout, stderr, environment });
  await printStatusLine({ environment, stdin, terminal }, sessionFacts);
  return 0;
}
