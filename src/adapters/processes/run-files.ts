import { existsSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { asList, asRecord, parseJson } from '../../core/bytes/json-fields.ts';
import { PROXY_FLAG_NAMES, type ProxyFlags } from '../../core/settings/config-proxy.ts';
import { codeOf, FileError, folderHint } from '../files/file-error.ts';
import { DRAFT } from '../files/folder-purpose.ts';
import { ensurePrivateFolder } from '../files/private-folder.ts';
import { replaceFile } from '../files/replace-file.ts';

/**
 * The file in the data folder with which a running proxy can be found. The proxy removes the file when it ends. A run
 * file is only a hint: a killed process leaves its file, and the process id in the file may belong to another program
 * by now. So ask the process for a proof before you act on a file (local-calls.ts).
 */
export interface RunFile {
  readonly pid: number;
  readonly host: string;
  readonly port: number;
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /**
   * The sha256 of the proxy's local token, with which `svc stop` checks the proof if the configuration cannot be read.
   * It gives no access. Absent in files of older builds.
   */
  readonly tokenDigest?: string;
  /** Names of upstreams that refused the provider key in their last answer. */
  readonly refusedKeys?: readonly string[];
  /** The id of the build that runs; undefined in files of older releases. */
  readonly build?: string;
  readonly script?: string;
  /** True if svc started the proxy in the background, so svc may restart it. */
  readonly isDetached?: boolean;
  readonly flags?: ProxyFlags;
}

/** Matches the names that a configuration may give to upstreams. */
const UPSTREAM = /^[a-z0-9][a-z0-9_-]{0,39}$/;

const NAME = new RegExp(`^proxy-(\\d{1,10})\\.json(${DRAFT})?$`);
/** Bound on a run file, in characters. A usual one has 450, and some 40 more for each refused key. */
const BYTES_MAX = 8192;
const BUILD_FORM = /^[\w-]{1,40}$/;
const DIGEST_FORM = /^[\w-]{43}$/;
/** Matches the value of a flag. The longest values are modes and addresses. */
const FLAG = /^[\w.:-]{1,40}$/;
/** Bound on run files that are read. Killed processes leave some. */
const FILES_MAX = 100;

/** Writes the file. Throws FileError if the folder cannot be used. */
export async function writeRunFile(folder: string, run: RunFile): Promise<void> {
  try {
    await ensurePrivateFolder(folder);
    // Do not sync the file, which is only a hint: the first request would wait for the disk.
    const text = `${JSON.stringify(run)}\n`;
    await replaceFile(pathOf(folder, run.pid), text, { isSynced: false });
    await listRunFiles(folder);
  } catch (error) {
    if (error instanceof FileError) throw error;
    const message = `${folder} cannot be written (${codeOf(error) || 'unknown error'}).`;
    throw new FileError(message, folderHint(codeOf(error)), { cause: error });
  }
}

/** Writes the file again if it is missing. Never rejects. */
export async function keepRunFile(folder: string, run: RunFile): Promise<void> {
  if (existsSync(pathOf(folder, run.pid))) return;
  await writeRunFile(folder, run).catch(() => undefined);
}

export async function removeRunFile(folder: string, pid: number): Promise<void> {
  // If the file cannot be removed, readers recognise that it is stale.
  await rm(pathOf(folder, pid), { force: true }).catch(() => undefined);
}

/** Says whether a process ended without removing its file: it was killed, or it crashed. */
export function wasKilled(folder: string, pid: number): boolean {
  return !isAlive(pid) && existsSync(pathOf(folder, pid));
}

/** Lists the files of running processes, oldest first, and removes the files of ended ones. */
export async function listRunFiles(folder: string): Promise<readonly RunFile[]> {
  const names = await readdir(folder).catch((): string[] => []);
  const found: RunFile[] = [];
  for (const name of names.filter((one) => NAME.test(one)).slice(0, FILES_MAX)) {
    const [, digits, draft] = NAME.exec(name) ?? [];
    const pid = Number(digits);
    if (!isAlive(pid)) {
      // If the file cannot be removed, readers recognise that it is stale.
      await rm(join(folder, name), { force: true }).catch(() => undefined);
      continue;
    }
    if (draft !== undefined) continue;
    const run = await readRunFile(join(folder, name));
    if (run?.pid === pid) found.push(run);
  }
  return found.toSorted((one, other) => one.startedAt - other.startedAt);
}

async function readRunFile(path: string): Promise<RunFile | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.length > BYTES_MAX ? undefined : parseRunFile(parseJson(text));
}

function parseRunFile(value: unknown): RunFile | undefined {
  const fields = asRecord(value);
  const { pid, host, port, version, startedAt, refusedKeys, build, script, isDetached } = fields;
  const { tokenDigest } = fields;
  const isHost = host === '127.0.0.1' || host === '::1';
  const isPort = Number.isInteger(port) && Number(port) > 0 && Number(port) <= 65_535;
  const isVersion = typeof version === 'string' && /^[\w.+-]{1,40}$/.test(version);
  if (!isHost || !isPort || !isVersion) return undefined;
  if (!Number.isInteger(pid) || !Number.isFinite(startedAt)) return undefined;
  const names = asList(refusedKeys).filter((name) => typeof name === 'string');
  return {
    pid: Number(pid),
    host,
    port: Number(port),
    version,
    startedAt: Number(startedAt),
    ...(names.length === 0 ? {} : { refusedKeys: names.filter((name) => UPSTREAM.test(name)) }),
    ...(typeof build === 'string' && BUILD_FORM.test(build) ? { build } : {}),
    ...(typeof tokenDigest === 'string' && DIGEST_FORM.test(tokenDigest) ? { tokenDigest } : {}),
    ...(typeof script === 'string' ? { script } : {}),
    ...(isDetached === true ? { isDetached } : {}),
    ...flagsIn(fields['flags']),
  };
}

function flagsIn(value: unknown): Pick<RunFile, 'flags'> {
  const given = asRecord(value);
  const flags = PROXY_FLAG_NAMES.flatMap((name) => {
    const text = given[name];
    return typeof text === 'string' && FLAG.test(text) ? [[name, text] as const] : [];
  });
  return flags.length === 0 ? {} : { flags: Object.fromEntries(flags) };
}

function pathOf(folder: string, pid: number): string {
  return join(folder, `proxy-${pid}.json`);
}

/** Says whether any process has this id. It may be another program than svc. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}
