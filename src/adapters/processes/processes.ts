import { codeOf } from '../files/file-error.ts';

/** True while a process has this id, even another program's. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}
