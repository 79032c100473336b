import { findSetAside, findUnwritable, looseDataFiles } from '../../adapters/files/data-files.ts';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { FileError, folderHint } from '../../adapters/files/file-error.ts';
import { checkFolder, folderMode, isPrivate } from '../../adapters/files/private-folder.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { count } from '../listing.ts';
import { deadline } from '../store.ts';
import { blockedText, replacedText } from '../proxy/recent-trouble.ts';
import { type Check, looseCheck } from './checks.ts';
import { memoryIn } from './doctor-hosted.ts';
import { MemoryError } from '../../core/errors.ts';
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { readWholeRegistry } from '../../adapters/projects/registry.ts';
import { recentRequests } from '../../adapters/state/recent-requests.ts';
import { blockedFiles, databaseFile, stateFile } from '../../adapters/files/database-file.ts';
import type { StoreHealth } from '../../ports/local-store.ts';
import type { Memory, MemoryRecord } from '../../ports/memory.ts';
import { openLocalStore } from '../compose-store.ts';
import { captureHuman } from '../../core/memory/captures.ts';
import { PROBE_SPACE } from '../../core/request/space.ts';

/**
 * Checks the store on this machine: folder, modes, files, speed, and whether it stores and returns a sentence. Tests
 * give their own `inspect`.
 */
export async function checkStore(
  environment: Environment,
  inspect = inspectStore,
): Promise<readonly Check[]> {
  const subject = 'Store';
  try {
    const folder = dataFolder(environment);
    const loose = await checkModes(folder);
    const unwritable = await findUnwritable(folder);
    if (unwritable !== undefined) {
      const wrong = `you may not write to ${unwritable}, so svc stores nothing`;
      return [...loose, { level: 'problem', subject, found: wrong, fix: folderHint('') }];
    }
    const [blocked] = blockedFiles(folder);
    if (blocked !== undefined) {
      const fix = `See what it is: ls -ld "${blocked}"`;
      return [...loose, { level: 'problem', subject, found: blockedText(blocked), fix }];
    }
    const aside = [
      ...(await checkSetAside(folder)),
      ...(await checkProjects(folder)),
      ...checkReplaced(folder, Date.now()),
    ];
    const found = await inspect(folder);
    if (found === undefined) {
      const other = [...loose, ...aside];
      return other.length > 0 ? other : [await nothingStored(folder, environment)];
    }
    return [...loose, ...aside, fileCheck(found), ...useChecks(found)];
  } catch (error) {
    if (error instanceof FileError) {
      return [{ level: 'problem', subject, found: error.message, fix: error.hint }];
    }
    if (!(error instanceof MemoryError)) throw error;
    const isNewer = error.message.includes('later version');
    const fix = isNewer
      ? 'npm install -g svc-local-proxy@latest'
      : `Check the file with: ls -ld "${dataFolder(environment)}"/*, and the disk with: df -h`;
    return [{ level: 'problem', subject, found: error.message, fix }];
  }
}

/** Reports that there is no database. If earlier requests used one, it was moved or deleted. */
async function nothingStored(folder: string, environment: Environment): Promise<Check> {
  const subject = 'Store';
  if (!existsSync(stateFile(folder))) {
    return { level: 'ok', subject, found: `${folder}, nothing stored yet` };
  }
  const file = databaseFile(folder);
  const hadOne = recentRequests(folder, 0).some((row) => USED.has(row.memoryState));
  if (!hadOne || (await memoryIn(environment)).memory?.kind === 'hosted') {
    return { level: 'ok', subject, found: `${folder}, no memories: there is no ${basename(file)}` };
  }
  return {
    level: 'warning',
    subject,
    found: `${file} is missing, and earlier requests used it`,
    fix: 'To restore a copy: svc stop, then copy it there, then svc start. Without one svc begins an empty memory.',
  };
}

/** The memory states of requests that used a database. */
const USED: ReadonlySet<string> = new Set(['recalled', 'empty']);

async function checkModes(folder: string): Promise<readonly Check[]> {
  const mode = await folderMode(folder);
  if (mode === undefined) return [];
  // With `asked`, checkFolder() also accepts an empty folder with an open mode, which is reported below.
  await checkFolder(folder, { asked: true });
  const own = isPrivate(mode) ? [] : [{ path: folder, mode }];
  const loose = [...own, ...(await looseDataFiles(folder))];
  return loose.map((one) => looseCheck('Store', one));
}

/** Reports damaged files that svc has renamed. When it renamed them, only the command that opened the store said so. */
async function checkSetAside(folder: string): Promise<readonly Check[]> {
  return (await findSetAside(folder)).map((path) => {
    const name = basename(path).replace(/\.corrupt-.*$/, '');
    const what = name === 'memory.db' ? 'its memories' : 'it';
    return {
      level: 'warning',
      subject: 'Store',
      found: `${path} was damaged and set aside: svc does not use ${what}`,
      fix: `Replace ${name} by an earlier copy, or delete the file that was set aside.`,
    };
  });
}

/** Reports a registry of projects that cannot be read. */
async function checkProjects(folder: string): Promise<readonly Check[]> {
  try {
    await readWholeRegistry(folder);
    return [];
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    return [{ level: 'problem', subject: 'Store', found: error.message, fix: error.hint }];
  }
}

function checkReplaced(folder: string, now: number): readonly Check[] {
  const line = replacedText(folder, now);
  if (line === undefined) return [];
  const fix = 'To restore an earlier copy: svc stop, then copy it, then svc start.';
  return [{ level: 'warning', subject: 'Store', found: line, fix }];
}

function fileCheck(found: StoreInspection): Check {
  const { problem, isWhole, file, sqliteVersion, driver, records, bytes } = found;
  const subject = 'Store';
  if (problem !== undefined) {
    const fix =
      'Replace it by an earlier copy, or start again: svc memory import --from claude-code';
    return { level: 'problem', subject, found: problem, fix };
  }
  if (!isWhole) {
    const fix = `svc memory export > memories.jsonl, svc stop, mv "${file}" "${file}.old", svc memory import memories.jsonl`;
    return { level: 'problem', subject, found: `${file} is inconsistent`, fix };
  }
  const size = `${count(records, 'memory', 'memories')}, ${(bytes / 1_000_000).toFixed(1)} MB`;
  const text = `${file}, whole, ${size}, SQLite ${sqliteVersion} (${driver})`;
  return { level: 'ok', subject, found: text };
}

/** Longest recall without a warning, in milliseconds: half of the default of `proxy.recallMs`. */
const RECALL_MS_MAX = 150;

function useChecks({ probe, recall }: StoreInspection): readonly Check[] {
  const subject = 'Memory';
  if (probe.state === 'failed') {
    const found = `a test sentence failed to ${probe.step}: ${probe.message}`;
    const fix =
      'Is the disk full, or the folder not writable? Check with: df -h, and: svc memory list';
    return [{ level: 'problem', subject, found, fix }];
  }
  const written = `written, read back, recalled and forgotten in ${Math.ceil(probe.ms)} ms`;
  if (recall === undefined) return [{ level: 'ok', subject, found: written }];
  const found = `${written}; a recall takes ${Math.ceil(recall.ms)} ms`;
  if (recall.ms <= RECALL_MS_MAX) return [{ level: 'ok', subject, found }];
  return [{ level: 'warning', subject, ...slowRecall(recall, found) }];
}

/** Explains a slow recall: much CPU time means a large store, little CPU time means a busy machine. */
function slowRecall({ ms, cpuMs }: RecallTime, found: string): Pick<Check, 'found' | 'fix'> {
  const late = `${found}; a request waits at most 300 ms`;
  if (cpuMs > RECALL_MS_MAX) {
    const fix =
      'Forget memories that you do not need: svc memory list, then svc memory forget --space NAME';
    return { found: late, fix };
  }
  const waited = Math.max(0, Math.ceil(ms) - Math.ceil(cpuMs));
  return {
    found: `${late}; svc waited ${waited} ms of it for the processor, the disk or another program, because this machine is busy`,
    fix: 'The size of the memory is not the cause. Check again when the machine is less busy: svc doctor',
  };
}

export interface StoreInspection extends StoreHealth {
  /** False if SQLite's check of the database found an inconsistency. */
  readonly isWhole: boolean;
  /** The fastest of a few recalls in the space of the newest record; undefined if the store is empty. */
  readonly recall?: RecallTime;
  readonly probe: MemoryProbe;
  /** What is wrong, for users; undefined if nothing is. */
  readonly problem?: string;
}

export interface RecallTime {
  readonly ms: number;
  /** CPU milliseconds of this process on all its threads. If fewer than `ms`, the process had to wait. */
  readonly cpuMs: number;
}

/** Inspects the store. Returns undefined without a database, which a check must not create. Throws MemoryError. */
export async function inspectStore(folder: string): Promise<StoreInspection | undefined> {
  if (!existsSync(databaseFile(folder))) return undefined;
  const reported: string[] = [];
  const store = openLocalStore(folder, (line) => reported.push(line));
  try {
    const health = await store.health();
    const isWhole = await store.isWhole();
    // This fails if state.db cannot be used.
    await store.requestLog.list({ limit: 1 });
    const recall = await timeRecall(store.memory);
    const probe = await probeMemory(store.memory, Date.now());
    const [problem] = reported;
    return {
      ...health,
      isWhole,
      probe,
      ...(recall === undefined ? {} : { recall }),
      ...(problem === undefined ? {} : { problem }),
    };
  } finally {
    await store.close();
  }
}

/** Bound on the characters of the question of a timed recall: about the length of users' questions. */
const QUESTION_CHARS_MAX = 200;
/** The number of timed recalls. svc reports the fastest, because the first must read the index from disk. */
const RECALLS = 3;

async function timeRecall(memory: Memory): Promise<RecallTime | undefined> {
  const signal = deadline();
  const [newest] = await memory.list({ limit: 1 }, signal);
  if (newest === undefined) return undefined;
  const humanText = newest.text.slice(0, QUESTION_CHARS_MAX);
  const question = { humanText, assistantText: '', excludeDigests: [], tokensMax: 512 };
  let quickest: RecallTime | undefined;
  for (let round = 0; round < RECALLS; round += 1) {
    const from = performance.now();
    const before = process.cpuUsage();
    // oxlint-disable-next-line no-await-in-loop -- Two recalls at once would wait for each other.
    await memory.recall({ ...question, space: newest.space, now: newest.at }, signal);
    const ms = performance.now() - from;
    const { user, system } = process.cpuUsage(before);
    if (ms < (quickest?.ms ?? Infinity)) quickest = { ms, cpuMs: (user + system) / 1000 };
  }
  return quickest;
}

type ProbeStep = 'write' | 'read back' | 'recall' | 'forget';

/** The result of probeMemory(). */
type MemoryProbe =
  | { readonly state: 'ok'; readonly ms: number }
  | { readonly state: 'failed'; readonly step: ProbeStep; readonly message: string };

/** Tests whether the memory writes, reads, recalls and forgets a sentence, in a space of its own. */
async function probeMemory(memory: Memory, now: number): Promise<MemoryProbe> {
  const record = recordAt(now);
  let step: ProbeStep = 'write';
  const from = performance.now();
  try {
    const [state] = await memory.capture([record], deadline());
    if (state !== 'stored') return failed(step, `it answered ${state ?? 'nothing'}`);
    step = 'read back';
    const { digest, space } = record;
    const held = await memory.retrieve({ digest, space }, deadline());
    if (held?.text !== record.text) return failed(step, 'the text that came back is different');
    step = 'recall';
    const question = { humanText: record.text, assistantText: '', excludeDigests: [] };
    const answer = await memory.recall({ ...question, space, tokensMax: 512, now }, deadline());
    if (!answer.passages.some((one) => one.digest === digest)) {
      return failed(step, 'it was not found again');
    }
    step = 'forget';
    const forgotten = await memory.forget({ refs: [held.ref], space }, deadline());
    if (forgotten !== 1) return failed(step, 'it was not forgotten');
    return { state: 'ok', ms: performance.now() - from };
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error;
    return failed(step, error.message);
  }
}

function failed(step: ProbeStep, message: string): MemoryProbe {
  return { state: 'failed', step, message };
}

function recordAt(now: number): MemoryRecord {
  const text = `The doctor of svc wrote this sentence at ${new Date(now).toISOString()} to read it back.`;
  const captured = captureHuman(text);
  if (captured === undefined) throw new Error('The sentence of the probe is not worth keeping.');
  return {
    ...captured,
    space: PROBE_SPACE,
    conversation: `probe_${now}`,
    fingerprint: `probe_${now}`,
    exchange: 0,
    client: 'svc',
    at: now,
  };
}
