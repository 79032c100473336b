import { constants } from 'node:fs';
import { open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../core/config-values.ts';
import { codeOf, FileError } from './file-error.ts';
import { ensurePrivateFolder, FILE_MODE, tightenFolder } from './private-folder.ts';
import { isAlive } from './processes.ts';

/**
 * Which proxies run on a data folder: a file of 0600 for each, which its process removes when it
 * ends. What a file says is a hint only: a killed process leaves its file behind, and its id may
 * belong to another program by now. Whoever acts on it asks the process first.
 */
export interface RunFile {
  readonly pid: number;
  readonly host: string;
  readonly port: number;
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

const NAME = /^proxy-(\d{1,10})\.json$/;
/** A file is 120 bytes. */
const BYTES_MAX = 4096;
/** More proxies than this on one folder are files that nobody removed. */
const FILES_MAX = 100;

const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants;

/** Throws FileError when the folder cannot be used. */
export async function writeRunFile(folder: string, run: RunFile): Promise<void> {
  try {
    await ensurePrivateFolder(folder);
    await tightenFolder(folder);
    const path = pathOf(folder, run.pid);
    const staged = `${path}.new`;
    // Left by a process that had this id before.
    await rm(staged, { force: true });
    const handle = await open(staged, O_CREAT | O_EXCL | O_WRONLY | (O_NOFOLLOW ?? 0), FILE_MODE);
    try {
      await handle.writeFile(`${JSON.stringify(run)}\n`);
    } finally {
      await handle.close();
    }
    await rename(staged, path);
  } catch (error) {
    if (error instanceof FileError) throw error;
    const code = codeOf(error) || 'unknown error';
    const hint = 'Make the folder writable for you, or set SVC_DATA_HOME to another one.';
    throw new FileError(`${folder} cannot be written (${code}).`, hint, { cause: error });
  }
}

export async function removeRunFile(folder: string, pid: number): Promise<void> {
  // What cannot be removed is stale from now on, and known as such.
  await rm(pathOf(folder, pid), { force: true }).catch(() => undefined);
}

/** Those whose process exists; the files of the others are removed. Oldest first. */
export async function listRunFiles(folder: string): Promise<readonly RunFile[]> {
  const names = await readdir(folder).catch((): string[] => []);
  const found: RunFile[] = [];
  for (const name of names.filter((one) => NAME.test(one)).slice(0, FILES_MAX)) {
    const pid = Number(NAME.exec(name)?.[1]);
    if (!isAlive(pid)) {
      await removeRunFile(folder, pid);
      continue;
    }
    const run = await readRunFile(join(folder, name));
    if (run?.pid === pid) found.push(run);
  }
  return found.toSorted((one, other) => one.startedAt - other.startedAt);
}

async function readRunFile(path: string): Promise<RunFile | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  if (text.length > BYTES_MAX) return undefined;
  try {
    return parseRunFile(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function parseRunFile(value: unknown): RunFile | undefined {
  if (!isRecord(value)) return undefined;
  const { pid, host, port, version, startedAt } = value;
  const isHost = host === '127.0.0.1' || host === '::1';
  const isPort = Number.isInteger(port) && Number(port) > 0 && Number(port) <= 65_535;
  const isVersion = typeof version === 'string' && /^[\w.+-]{1,40}$/.test(version);
  if (!isHost || !isPort || !isVersion) return undefined;
  if (!Number.isInteger(pid) || !Number.isFinite(startedAt)) return undefined;
  return { pid: Number(pid), host, port: Number(port), version, startedAt: Number(startedAt) };
}

function pathOf(folder: string, pid: number): string {
  return join(folder, `proxy-${pid}.json`);
}
