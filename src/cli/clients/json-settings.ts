import { isDeepStrictEqual } from 'node:util';
import { jsonFault, parseJsonText, withJsonValue } from '../../adapters/files/json-text.ts';
import type { ClientChange, JsonChange } from '../../core/foreign/client-change.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { CliError } from '../cli-error.ts';
import type { ClientFileForm, Reverted } from './client-file.ts';

/**
 * A client's settings in JSON: single keys, because JSON has no comments to mark a block with and
 * clients rewrite the file whenever they change a setting. The record knows the keys.
 */

export type JsonSetting = Omit<JsonChange, 'before'>;

export interface JsonTarget {
  readonly path: string;
  /** The command without --write and --undo. */
  readonly command: string;
  readonly settings: readonly JsonSetting[];
  /** The client that refuses a file with comments or trailing commas as a whole. */
  readonly refusesComments?: string;
  /** The remedy for a file that is right and no JSON: YAML can be either. */
  readonly otherForm?: string;
}

export function jsonSettings(target: JsonTarget): ClientFileForm {
  const { path, command } = target;
  return {
    path,
    undoCommand: `${command} --undo`,
    byHand: (changes) => `look at ${namesIn(changes)}.`,
    apply: (text) => apply(target, text),
    revert: (text, { json }) => (json === undefined ? 'absent' : revert(text, json)),
    isEmpty: (text) => isDeepStrictEqual(parseJsonText(text), {}),
    // Without a record these are the person's own settings, which give way and come back.
    hasMark: () => false,
  };
}

function apply(
  { path, command, settings, refusesComments, otherForm }: JsonTarget,
  text: string,
): { readonly text: string; readonly change: Omit<ClientChange, 'hash'> } {
  const before = text.trim() === '' ? {} : parseJsonText(text);
  const isWritten = isRecord(before) && text.trim() !== '';
  if (refusesComments !== undefined && isWritten && jsonFault(text) === 'relaxed') {
    throw new CliError(
      `${path} has comments or trailing commas: ${refusesComments} refuses the whole file, so the settings of svc would have no effect.`,
      'Remove them, then try again. Nothing was changed.',
    );
  }
  if (!isRecord(before)) {
    if (otherForm !== undefined) {
      throw new CliError(`${path} is there already, in a form that svc cannot edit.`, otherForm);
    }
    throw new CliError(`${path} is not a valid JSON object.`, 'Correct it first, then try again.');
  }
  const wrong = settings.flatMap((setting) => foldersOf(setting)).find(isTaken(before));
  if (wrong !== undefined) {
    const message = `${path}: ${wrong.join('.')} is not an object.`;
    throw new CliError(message, 'Correct it first, then try again.');
  }
  const start = text.trim() === '' ? '{}\n' : text;
  const after = settings.reduce((now, { path: at, value }) => withJsonValue(now, at, value), start);
  const json = settings.map((setting): JsonChange => {
    const old = valueAt(before, setting.path);
    return old === undefined ? setting : { ...setting, before: old };
  });
  const wanted = settings.reduce<unknown>(
    (now, { path: at, value }) => withValue(now, at, value),
    before,
  );
  // A key that appears twice would keep its second value: the outcome is read again, not believed.
  if (!isDeepStrictEqual(plain(parseJsonText(after)), plain(wanted))) {
    throw new CliError(
      `${path} has a setting twice, or in a form that svc cannot edit.`,
      `Add the output of this command yourself: ${command}`,
    );
  }
  return { text: after, change: { json } };
}

/** The objects that contain a setting, outermost first. */
function foldersOf({ path }: Pick<JsonChange, 'path'>): readonly (readonly string[])[] {
  return path.slice(1).map((_, index) => path.slice(0, index + 1));
}

function isTaken(settings: unknown): (path: readonly string[]) => boolean {
  return (path) => {
    const value = valueAt(settings, path);
    return value !== undefined && !isRecord(value);
  };
}

function withValue(settings: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value;
  const own = isRecord(settings) ? settings : {};
  return { ...own, [key]: withValue(own[key], rest, value) };
}

function revert(text: string, changes: readonly JsonChange[]): Reverted {
  const now = parseJsonText(text);
  if (!isRecord(now)) return 'edited';
  // A key that a person took out, or set back, by hand counts as undone.
  const left = changes.filter(({ path, before }) => {
    const value = valueAt(now, path);
    return value !== undefined && !isDeepStrictEqual(value, before);
  });
  if (left.length === 0) return 'absent';
  if (left.some(({ path, value }) => !isDeepStrictEqual(valueAt(now, path), value)))
    return 'edited';
  const reverted = left.reduce((at, { path, before }) => withJsonValue(at, path, before), text);
  return { text: withoutEmptied(reverted, changes) };
}

/** An object that held nothing but svc's own keys was made for them, and goes with them. */
function withoutEmptied(text: string, changes: readonly JsonChange[]): string {
  const folders = changes.flatMap((change) => foldersOf(change));
  const innermostFirst = folders.toSorted((a, b) => b.length - a.length);
  return innermostFirst.reduce((now, folder) => {
    const inside = changes.filter(({ path }) => folder.every((key, at) => path[at] === key));
    const isMade = inside.every(({ before }) => before === undefined);
    const isLeft = isMade && isDeepStrictEqual(valueAt(parseJsonText(now), folder), {});
    return isLeft ? withJsonValue(now, folder, undefined) : now;
  }, text);
}

function namesIn(changes: readonly ClientChange[]): string {
  const names = changes.flatMap(({ json = [] }) => json.map(({ path }) => path.join('.')));
  return [...new Set(names)].join(', ');
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), value);
}

/** Key order does not count. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}
