import { findSetAside, findUnwritable, looseDataFiles } from '../../adapters/files/data-files.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { FileError, folderHint } from '../../adapters/files/file-error.ts';
import { checkFolder, folderMode, isPrivate } from '../../adapters/files/private-folder.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { replacedText } from '../proxy/recent-trouble.ts';
import type { Check } from './doctor-checks.ts';
import type { inspectStore, RecallTime, StoreInspection } from './store-inspection.ts';
import { MemoryError } from '../../core/errors.ts';

/** Doctor's look at the store on this machine: folder and modes, the file, a sentence there and back, its speed. */

export async function checkStore(
  environment: Environment,
  inspect: typeof inspectStore,
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
    const aside = [...(await checkSetAside(folder)), ...checkReplaced(folder, Date.now())];
    const found = await inspect(folder);
    if (found === undefined) {
      const nothing = { level: 'ok', subject, found: `${folder}, nothing stored yet` } as const;
      return loose.length > 0 ? loose : [nothing];
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

async function checkModes(folder: string): Promise<readonly Check[]> {
  const mode = await folderMode(folder);
  if (mode === undefined) return [];
  // An empty folder that is open is reported below, with the command that mends it.
  await checkFolder(folder, { asked: true });
  const own = isPrivate(mode) ? [] : [{ path: folder, mode }];
  const loose = [...own, ...(await looseDataFiles(folder))];
  return loose.map((one) => ({
    level: 'problem',
    subject: 'Store',
    found: `${one.path} is open to others (mode 0${one.mode.toString(8)})`,
    fix: 'svc doctor --fix',
  }));
}

/** svc reported it only to the person who opened the store then. */
async function checkSetAside(folder: string): Promise<readonly Check[]> {
  return (await findSetAside(folder)).map((path) => ({
    level: 'warning',
    subject: 'Store',
    found: `${path} was damaged and set aside: svc does not use its memories`,
    fix: 'Replace memory.db by an earlier copy, or delete the file that was set aside.',
  }));
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
  const size = `${records} ${records === 1 ? 'memory' : 'memories'}, ${megabytes(bytes)}`;
  const text = `${file}, whole, ${size}, SQLite ${sqliteVersion} (${driver})`;
  return { level: 'ok', subject, found: text };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** A request waits this long for its memory by default; half of it is a warning ahead of time. */
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

/** The size of a store shows in what svc computes for a recall; a busy machine shows in the waiting. */
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
