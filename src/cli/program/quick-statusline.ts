import { printStatusLine } from '../requests/statusline.ts';
import { Terminal } from '../terminal.ts';

/**
 * Runs `svc statusline`, and no other command. This is the entry of a bundle, a CommonJS file without the command-line
 * parser: a client runs it several times a second. `bin/svc.js` selects it.
 */
export async function run(): Promise<number> {
  const { env: environment, stdin, stdout, stderr } = process;
  const terminal = new Terminal({ stdout, stderr, environment });
  await printStatusLine({ environment, stdin, terminal });
  return 0;
}
