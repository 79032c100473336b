import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Tests of workers and of the command line run the built files, so they are built first. */
export default function buildOnce(): void {
  if (process.env['SVC_TEST_NO_BUILD'] === '1') return;
  const root = join(import.meta.dirname, '..', '..');
  const tsup = join(root, 'node_modules/tsup/dist/cli-default.js');
  for (const cwd of [root, join(root, 'service')]) {
    execFileSync(process.execPath, [tsup, '--silent'], { cwd, stdio: 'inherit' });
  }
}
