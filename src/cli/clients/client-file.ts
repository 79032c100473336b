import { isDeepStrictEqual } from 'node:util';
import {
  type ForeignFile,
  hashOf,
  readForeignFile,
  removeForeignFile,
  replaceForeignFile,
  UndoRecords,
} from '../../adapters/foreign/foreign-file.ts';
import {
  type ClientChange,
  type ClientRecord,
  parseClientRecord,
} from '../../core/foreign/client-change.ts';
import { CliError } from '../cli-error.ts';

/**
 * Adds svc's settings to a client's own file, and removes them. A record of the change and a backup are on disk before
 * the file changes, so that the earlier content can be restored.
 */

/** One kind of settings file: how svc adds its settings and removes them. */
export interface ClientFileForm {
  readonly path: string;
  /** Returns what the user must do to undo the change by hand, as words that follow a colon. */
  byHand(changes: readonly ClientChange[]): string;
  /** Returns the text with the settings, and what was changed. Throws CliError if svc cannot edit the text safely. */
  apply(text: string): Applied;
  /**
   * Removes the settings of `change`. Returns 'absent' if the text has none of these settings, 'lost' if it also lacks
   * an earlier value that svc had replaced, and 'edited' if a setting has another value than svc gave it.
   */
  revert(text: string, change: ClientChange): Reverted;
  isEmpty(text: string): boolean;
  /** Says whether the text has the comments with which svc marks its lines. */
  hasMark(text: string): boolean;
}

export interface Applied {
  readonly text: string;
  readonly change: Omit<ClientChange, 'hash'>;
}

export type Reverted = { readonly text: string } | 'absent' | 'edited' | 'lost';

interface Written {
  readonly path: string;
  readonly outcome: 'written' | 'unchanged';
}

interface Undone {
  readonly path: string;
  readonly outcome: 'restored' | 'taken-out' | 'removed' | 'nothing';
  /** Another file from which svc's settings were removed too; see undoLinked(). */
  readonly also?: string;
}

/** Says whether two parsed values are equal. The order of keys and the prototypes of objects do not count. */
export function isSameValue(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(plain(one), plain(other));
}

function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (_, one: unknown) => (typeof one === 'bigint' ? `${one}n` : one)),
  );
}

/** Returns svc's records of clients' files; unreadable records are left out. */
export async function clientRecords(dataFolder: string): Promise<readonly ClientRecord[]> {
  const all = await new UndoRecords(dataFolder).all();
  return all.flatMap(([, value]) => parseClientRecord(value) ?? []);
}

/** Computes what `writeClientFile` would change; undefined if nothing. */
export function previewClientFile(
  form: ClientFileForm,
  dataFolder: string,
): Promise<{ readonly path: string; readonly change: Applied['change'] } | undefined> {
  return withFile(form, dataFolder, async (opened) => {
    const { file } = opened;
    const { text, change } = form.apply(await baseOf(opened));
    return text === file.text ? undefined : { path: file.path, change };
  });
}

/** Returns the path of the file with a recorded change; undefined without a record. */
export function changedClientFile(
  form: ClientFileForm,
  dataFolder: string,
): Promise<string | undefined> {
  return withFile(form, dataFolder, ({ file, record }) =>
    Promise.resolve(record === undefined ? undefined : file.path),
  );
}

/** Writes the settings. A second call replaces what the first one wrote. */
export function writeClientFile(form: ClientFileForm, dataFolder: string): Promise<Written> {
  return withFile(form, dataFolder, async (opened) => {
    const { file, record, records, name } = opened;
    const { path } = file;
    const base = await baseOf(opened);
    const { text, change } = form.apply(base);
    if (text === file.text) return { path, outcome: 'unchanged' };
    const madeFolder = record === undefined ? file.missingFolder : record.madeFolder;
    const next: ClientRecord = {
      version: 1,
      path,
      named: form.path,
      isMade: record?.isMade ?? file.text === undefined,
      ...(madeFolder === undefined ? {} : { madeFolder }),
      // Keep the previous change too, because the file still has it until replaceForeignFile().
      changes: [{ hash: hashOf(text), ...change }, ...(record?.changes.slice(0, 1) ?? [])],
    };
    await records.write(name, next, base);
    await replaceForeignFile(file, text);
    await records.write(name, { ...next, changes: next.changes.slice(0, 1) }, undefined);
    return { path, outcome: 'written' };
  });
}

/**
 * Removes svc's settings from the file. Restores the earlier bytes if nobody else has changed the file since. Deletes a
 * file that svc created, if nothing else is in it.
 */
export function undoClientFile(form: ClientFileForm, dataFolder: string): Promise<Undone> {
  return withFile(form, dataFolder, async (opened) => {
    const { file, record, records, name } = opened;
    const { path, text } = file;
    const base = await baseOf(opened);
    if (record === undefined || text === undefined) {
      await records.remove(name);
      return { path, outcome: 'nothing' };
    }
    const isUnchanged = record.changes[0]?.hash === hashOf(text);
    // A file that svc created is the user's after the user has moved it, for example into a repository of settings.
    const isOwn = record.isMade && path === record.path;
    const isLeftOver = isOwn && (isUnchanged || form.isEmpty(base));
    const also = await undoLinked(opened);
    if (isLeftOver) await removeForeignFile(file, record.madeFolder);
    else if (base !== text) await replaceForeignFile(file, base);
    await records.remove(name);
    const undone = also === undefined ? { path } : { path, also };
    if (isLeftOver) return { ...undone, outcome: 'removed' };
    if (base === text) return { ...undone, outcome: 'nothing' };
    return { ...undone, outcome: isUnchanged ? 'restored' : 'taken-out' };
  });
}

/**
 * Removes svc's settings from a second file. If the client's path was a link when svc wrote the settings, and is a file
 * with a copy of them now, then the file to which the link led still has them too. Returns that file's path; undefined
 * if there is no such file.
 */
async function undoLinked(opened: Opened): Promise<string | undefined> {
  const { form, file, record } = opened;
  if (record === undefined || record.path === file.path) return undefined;
  const linked = await readForeignFile(record.path);
  // The earlier path may itself be a link to this file now.
  if (linked.path === file.path || !hasSettings(form, linked, record.changes)) return undefined;
  await replaceForeignFile(linked, await baseOf({ ...opened, file: linked }));
  return record.path;
}

interface Opened {
  readonly form: ClientFileForm;
  readonly file: ForeignFile;
  readonly record: ClientRecord | undefined;
  readonly records: UndoRecords;
  readonly name: string;
}

function withFile<T>(
  form: ClientFileForm,
  dataFolder: string,
  work: (opened: Opened) => Promise<T>,
): Promise<T> {
  const records = new UndoRecords(dataFolder);
  return records.alone(async () => {
    const named = await readForeignFile(form.path);
    const [name, record] = recordOf(form, named, await records.all());
    const file = record === undefined ? named : await fileOf(form, named, record);
    return work({ form, file, record, records, name });
  });
}

/**
 * Finds the undo record of a settings file, and the record's name; without a record, returns the name for a new one. A
 * record belongs to a file and not to a client, because a client may use another folder later.
 */
function recordOf(
  { path: named }: ClientFileForm,
  { path }: ForeignFile,
  all: readonly (readonly [string, unknown])[],
): readonly [string, ClientRecord | undefined] {
  const known = all.flatMap(([name, value]) => {
    const record = parseClientRecord(value);
    return record === undefined ? [] : [[name, record] as const];
  });
  // Since the record was made, a link may have replaced the file, or a file the link. So compare both recorded paths.
  return (
    known.find(([, record]) => record.path === path) ??
    known.find(([, record]) => record.named === named || record.path === named) ?? [
      hashOf(path).slice(0, 16),
      undefined,
    ]
  );
}

/**
 * Returns the file that has svc's settings: the one in the record if only that one has them, otherwise the one that the
 * client opens.
 */
async function fileOf(
  form: ClientFileForm,
  named: ForeignFile,
  { path, changes }: ClientRecord,
): Promise<ForeignFile> {
  if (path === named.path || hasSettings(form, named, changes)) return named;
  const recorded = await readForeignFile(path);
  return hasSettings(form, recorded, changes) ? recorded : named;
}

function hasSettings(
  form: ClientFileForm,
  { text }: ForeignFile,
  changes: readonly ClientChange[],
): boolean {
  if (text === undefined) return false;
  const outcomes = changes.map((change) => form.revert(text, change));
  return outcomes.some((outcome) => outcome !== 'absent' && outcome !== 'lost');
}

/** Returns the text without svc's settings; '' if there is no file. Throws CliError if svc cannot restore the text. */
async function baseOf({ form, file, record, records, name }: Opened): Promise<string> {
  const { path, text } = file;
  if (record === undefined) {
    if (text === undefined || !form.hasMark(text)) return text ?? '';
    throw new CliError(
      `${path} has settings of svc, and svc has no copy of the file from before.`,
      `Remove them yourself: ${form.byHand([])}`,
    );
  }
  const { isMade, changes } = record;
  const backup = await records.readBackup(name);
  const isMoved = path !== record.path;
  if (text !== undefined && changes[0]?.hash === hashOf(text) && backup !== undefined) {
    if (!(isMade && isMoved)) return backup;
  }
  const outcomes: readonly Reverted[] =
    text === undefined ? ['lost'] : changes.map((change) => form.revert(text, change));
  const reverted = outcomes.find((outcome) => typeof outcome === 'object');
  if (reverted !== undefined) return reverted.text;
  if (outcomes.includes('edited')) {
    throw new CliError(
      `${path} has changed in the lines that svc wrote, so svc does not change it.`,
      `Remove them yourself: ${form.byHand(changes)} The original file: ${records.backupPath(name)}`,
    );
  }
  // The user has removed the settings, so only the backup has the earlier values.
  if (outcomes.includes('lost') && !isMade && backup !== undefined && backup !== '') {
    throw new CliError(
      text === undefined
        ? `${path} is gone, so svc cannot restore it.`
        : `${path} has neither the settings of svc nor the values from before.`,
      `The original file: ${records.backupPath(name)}. Put back what you need, then delete that copy and try again.`,
    );
  }
  return text ?? '';
}
