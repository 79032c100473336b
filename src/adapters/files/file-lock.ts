import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { shellQuote } from '../../core/foreign/shell-quote.ts';
import { codeOf, FileError, folderHint } from './file-error.ts';
import { isAlive } from '../processes/run-files.ts';

/**
 * A lock between processes: a file that only one of them can create. It contains the writer's process id, so that
 * the lock of a killed writer does not block everyone.
 */

// How long to wait for the lock. A write takes milliseconds.
const WAIT_MS = 5000;
const POLL_MS = 25;
/** Age from which a lock is stale: no write takes so long, so its process id belongs to another program by now. */
const STALE_MS = 60_000;

/** Runs `work` while holding the lock. Throws FileError if the lock is not free within five seconds. */
export async function withFileLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  const mark = `${process.pid} ${randomBytes(8).toString('hex')}\n`;
  const deadline = performance.now() + WAIT_MS;
  while (!(await create(path, mark))) {
    if (await isStale(path)) await takeAway(path);
    else if (performance.now() > deadline)
      throw new FileError(
        `Another svc process is writing and has locked ${path}.`,
        `Wait for it. If no such process runs: rm ${shellQuote(path, 'sh')}`,
      );
    else await sleep(POLL_MS);
  }
  try {
    return await work();
  } finally {
    if ((await contentOf(path)) === mark) await rm(path, { force: true });
  }
}

async function create(path: string, mark: string): Promise<boolean> {
  try {
    const handle = await open(path, 'wx', 0o600);
    await handle.writeFile(mark);
    await handle.close();
    return true;
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') return false;
    const message = `${dirname(path)} cannot be written (${code || 'unknown error'}).`;
    throw new FileError(message, folderHint(code), { cause: error });
  }
}

async function isStale(path: string): Promise<boolean> {
  const made = await stat(path).catch(() => undefined);
  if (made === undefined) return false;
  const age = Date.now() - made.mtimeMs;
  if (age > STALE_MS) return true;
  const pid = Number(/^\d{1,10}/.exec(await contentOf(path))?.[0] ?? '0');
  // A new lock is empty for an instant, before its process id is written.
  if (pid === 0) return age > POLL_MS * 40;
  return !isAlive(pid);
}

// Rename first: if two processes find the same stale lock, only one can rename it. If it took a new lock instead, one
// change would be lost, but the file would stay whole.
async function takeAway(path: string): Promise<void> {
  const aside = `${path}.${randomBytes(4).toString('hex')}`;
  try {
    await rename(path, aside);
  } catch {
    return;
  }
  await rm(aside, { force: true });
}

async function contentOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
