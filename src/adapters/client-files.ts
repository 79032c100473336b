import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

/**
 * What coding agents have in the user's home: read to tell whether they point at the proxy, never
 * written. They hold credentials of their own, so nothing of them is repeated but what is asked for.
 */

type Environment = Readonly<Record<string, string | undefined>>;

/** Settings are kilobytes; Claude Code's state of many projects some megabytes. */
const BYTES_MAX = 16 * 1024 * 1024;

/** '' when there is no such file, or it is none of a person's settings. */
export function readHomeFile(environment: Environment, ...path: readonly string[]): string {
  const home = environment['HOME'] ?? '';
  if (!isAbsolute(home)) return '';
  try {
    const file = join(home, ...path);
    const stat = statSync(file);
    return stat.isFile() && stat.size <= BYTES_MAX ? readFileSync(file, 'utf8') : '';
  } catch {
    return '';
  }
}

/** True when the search path has a program of this name. */
export function isInstalled(environment: Environment, program: string): boolean {
  const folders = (environment['PATH'] ?? '').split(delimiter).filter(isAbsolute);
  const names = process.platform === 'win32' ? [`${program}.cmd`, `${program}.exe`] : [program];
  return folders.some((folder) => names.some((name) => isExecutable(join(folder, name))));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
