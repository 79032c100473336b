import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Tests of workers and of the command line run the built files, so they are built first. */
export default function buildOnce(): () => void {
  if (process.env['SVC_TEST_NO_BUILD'] !== '1') build();
  return removeNewServers;
}

function build(): void {
  const root = join(import.meta.dirname, '..', '..');
  const tsup = join(root, 'node_modules/tsup/dist/cli-default.js');
  for (const cwd of [root, join(root, 'service')]) {
    execFileSync(process.execPath, [tsup, '--silent'], { cwd, stdio: 'inherit' });
  }
}

/** Removes what service/test/support/postgres.ts made for all processes of the run: none of them is the last. */
function removeNewServers(): void {
  for (const folder of ['/dev/shm', tmpdir()]) {
    const names = existsSync(folder) ? readdirSync(folder) : [];
    const own = names.filter((name) => name.startsWith(`svc-postgres-new-${process.pid}-`));
    for (const name of own) rmSync(join(folder, name), { recursive: true, force: true });
  }
}
