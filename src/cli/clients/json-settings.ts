import { isDeepStrictEqual } from 'node:util';
import { jsonFault, parseJsonText, withJsonValue } from '../../adapters/files/json-text.ts';
import type { ClientChange, JsonChange } from '../../core/foreign/client-change.ts';
import { asList, isRecord } from '../../core/bytes/json-fields.ts';
import { CliError } from '../cli-error.ts';
import { type Applied, type ClientFileForm, isSameValue, type Reverted } from './client-file.ts';

/**
 * Sets single keys in a client's JSON settings. A marked block is not possible: JSON has no comments, and clients
 * rewrite the file whenever they change a setting. So the undo record lists the keys.
 */

export interface JsonSetting extends Omit<JsonChange, 'before'> {
  /** True: do not replace an existing value. */
  readonly isDefault?: true;
}

export interface JsonTarget {
  readonly path: string;
  /** The client's name in `svc print-config`. */
  readonly name: string;
  readonly settings: readonly JsonSetting[];
  /** The client's name, if the client refuses a file with comments or trailing commas. */
  readonly refusesComments?: string;
  /** A hint for a valid file that is not JSON but, for example, YAML. */
  readonly otherForm?: string;
}

export function jsonSettings(target: JsonTarget): ClientFileForm {
  const { path } = target;
  return {
    path,
    byHand: (changes) => `look at ${namesIn(changes)}.`,
    apply: (text) => apply(target, text),
    revert: (text, { json }) => (json === undefined ? 'absent' : revert(text, json)),
    isEmpty: (text) => isDeepStrictEqual(parseJsonText(text), {}),
    // Without an undo record, even settings that equal svc's are the user's own: svc records and later restores them.
    hasMark: () => false,
  };
}

function apply(
  { path, name, settings: all, refusesComments, otherForm }: JsonTarget,
  text: string,
): Applied {
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
  const wrong = all.flatMap(foldersOf).find((folder) => {
    const value = valueAt(before, folder);
    return value !== undefined && !isRecord(value);
  });
  if (wrong !== undefined) {
    const message = `${path}: ${wrong.join('.')} is not an object.`;
    throw new CliError(message, 'Correct it first, then try again.');
  }
  const scalar = all.find(({ path: at, isItem }) => isItem && !isListOrAbsent(before, at));
  if (scalar !== undefined) {
    const message = `${path}: ${scalar.path.join('.')} is not a list.`;
    throw new CliError(message, 'Correct it first, then try again.');
  }
  const json = all.flatMap(({ isDefault, ...setting }): JsonChange[] => {
    const old = valueAt(before, setting.path);
    if (old === undefined) return [setting];
    return isDefault === true ? [] : [{ ...setting, before: old }];
  });
  const after = json.reduce(withChange, text.trim() === '' ? '{}\n' : text);
  const wanted = json.reduce<unknown>(
    (now, change) => withValue(now, change.path, wholeValue(change)),
    before,
  );
  // If the file has a key twice, its second value stays in force, so parse the result and check it.
  if (!isSameValue(parseJsonText(after), wanted)) {
    throw new CliError(
      `${path} has a setting twice, or in a form that svc cannot edit.`,
      `Add the output of this command yourself: svc print-config ${name}`,
    );
  }
  return { text: after, change: { json } };
}

function isListOrAbsent(settings: unknown, path: readonly string[]): boolean {
  const value = valueAt(settings, path);
  return value === undefined || Array.isArray(value);
}

/** Writes a change into the text. Appends an element to its list (`isItem`), whose own text stays as it is. */
function withChange(text: string, change: JsonChange): string {
  const { path, value, before, isItem } = change;
  const isAppended = isItem === true && before !== undefined;
  return withJsonValue(
    text,
    isAppended ? [...path, -1] : path,
    isAppended ? value : wholeValue(change),
  );
}

/** Returns what is at the path after the change: the value, or for an element of a list the whole list. */
function wholeValue({ value, before, isItem }: JsonChange): unknown {
  return isItem === true ? [...asList(before), value] : value;
}

/** Returns the paths of the objects that contain a setting, outermost first. */
function foldersOf({ path }: Pick<JsonChange, 'path'>): readonly (readonly string[])[] {
  return path.slice(1).map((_, index) => path.slice(0, index + 1));
}

function withValue(settings: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value;
  const own = isRecord(settings) ? settings : {};
  return { ...own, [key]: withValue(own[key], rest, value) };
}

function revert(text: string, changes: readonly JsonChange[]): Reverted {
  const now = parseJsonText(text);
  if (!isRecord(now)) return 'edited';
  // A key that the user has removed, or has set to its earlier value, needs no change.
  const left = changes.filter((change) => {
    const value = valueAt(now, change.path);
    if (change.isItem === true) return placeIn(value, change) !== -1;
    return value !== undefined && !isDeepStrictEqual(value, change.before);
  });
  if (left.length === 0) {
    const isLost = changes.some(
      ({ path, before, isItem }) =>
        isItem !== true && before !== undefined && valueAt(now, path) === undefined,
    );
    return isLost ? 'lost' : 'absent';
  }
  const isEdited = left.some(
    ({ path, value, isItem }) => isItem !== true && !isDeepStrictEqual(valueAt(now, path), value),
  );
  if (isEdited) return 'edited';
  return { text: withoutEmptied(left.reduce(withoutChange, text), changes) };
}

function placeIn(list: unknown, { value }: JsonChange): number {
  return asList(list).findIndex((item) => isDeepStrictEqual(item, value));
}

/** Undoes a change. A list that was created for an element is removed with it if no other element is in it. */
function withoutChange(text: string, change: JsonChange): string {
  const { path, before, isItem } = change;
  if (isItem !== true) return withJsonValue(text, path, before);
  const list = valueAt(parseJsonText(text), path);
  const isMade = before === undefined && asList(list).length === 1;
  return withJsonValue(text, isMade ? path : [...path, placeIn(list, change)], undefined);
}

/** Removes the objects that svc created for its keys and that are empty now. */
function withoutEmptied(text: string, changes: readonly JsonChange[]): string {
  const innermostFirst = changes.flatMap(foldersOf).toSorted((a, b) => b.length - a.length);
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
