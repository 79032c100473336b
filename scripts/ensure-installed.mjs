// Makes `npm test` and `npm run demo` work on a fresh clone: installs what package-lock.json names
// when node_modules is missing or was installed from another lock file. Never needs a package.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');

if (!isInstalled()) {
  process.stderr.write('installing the packages that package-lock.json names (npm ci)\n');
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: root,
    // npm reports on stdout; that belongs to the command that comes next.
    stdio: ['ignore', process.stderr, 'inherit'],
    shell: process.platform === 'win32',
  });
  process.exitCode = status ?? 1;
}

function isInstalled() {
  const wanted = readPackages('package-lock.json');
  const installed = readPackages(join('node_modules', '.package-lock.json'));
  if (wanted === undefined || installed === undefined) return false;
  // npm leaves out optional packages of other platforms; everything else must be there as named.
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    if (path === '' || optional === true) return true;
    return installed[path]?.version === version;
  });
}

function readPackages(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
  } catch {
    return undefined;
  }
}
