import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { shellQuote } from '../../core/foreign/shell-quote.ts';
import { codeOf, FileError, folderHint } from './file-error.ts';
import { isAlive } from '../processes/run-files.ts';

/**
 * A lock between processes: a file that only one of them can create. It contains the id of the process that holds the
 * lock, so that other processes can remove the lock of a killed one.
 */

/** Longest wait for the lock. A process holds it for milliseconds. */
const WAIT_MS = 5000;
const POLL_MS = 25;
/**
 * Age from which a lock is stale even if its process id is in use: no write takes so long, so the id now belongs to
 * another program.
 */
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
  // A new lock is empty until its process id is written.
  if (pid === 0) return age > POLL_MS * 40;
  return !isAlive(pid);
}

/**
 * Removes a stale lock. It renames the lock first, because only one of two processes that find the lock can rename it.
 * But if a new lock is created in between, the second of the two renames this new lock. Then two changes are written at
 * the same time and one of them is lost, but the file that the lock protects stays whole.
 */
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
