import { isRecord } from '../bytes/json-fields.ts';
import type { TomlChange } from './toml-block.ts';

/** The record of svc's changes in a client's own file, with which svc undoes them. */

/** A value that was set in a JSON file. `before`: the earlier value; not set if there was none. */
export interface JsonChange {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly before?: unknown;
  /** True if `value` was appended to the list at `path`; `before` is the list without it. */
  readonly isItem?: true;
}

export interface ClientChange {
  /** The hash of the whole file after the change. If the file still has this hash, undo restores the backup. */
  readonly hash: string;
  readonly toml?: TomlChange;
  readonly json?: readonly JsonChange[];
  /** The content of the file, if the whole file is svc's own. */
  readonly whole?: string;
}

export interface ClientRecord {
  readonly version: 1;
  /** The path of the file itself, after following all links. */
  readonly path: string;
  /** The path by which the client opens the file, which may be a link. */
  readonly named: string;
  /** True if there was no file before. */
  readonly isMade: boolean;
  /** The outermost folder that svc made for the file. */
  readonly madeFolder?: string;
  /** The changes, newest first. There are two if replacing an older change was interrupted. */
  readonly changes: readonly ClientChange[];
}

/** Parses a record; undefined for anything that svc did not write. */
export function parseClientRecord(value: unknown): ClientRecord | undefined {
  if (!isRecord(value) || value['version'] !== 1) return undefined;
  const { path, named, isMade, madeFolder, changes } = value;
  if (typeof path !== 'string' || typeof named !== 'string') return undefined;
  const parsed = Array.isArray(changes) ? changes.map(parseChange) : [];
  const known = parsed.flatMap((change) => (change === undefined ? [] : [change]));
  if (known.length === 0 || known.length !== parsed.length) return undefined;
  const folder = typeof madeFolder === 'string' ? { madeFolder } : {};
  return { version: 1, path, named, isMade: isMade === true, ...folder, changes: known };
}

function parseChange(value: unknown): ClientChange | undefined {
  if (!isRecord(value) || typeof value['hash'] !== 'string') return undefined;
  const { hash, toml, json, whole } = value;
  if (typeof whole === 'string') return { hash, whole };
  if (isRecord(toml) && isLines(toml['lines']) && isLines(toml['aside'])) {
    return { hash, toml: { lines: toml['lines'], aside: toml['aside'] } };
  }
  if (!Array.isArray(json) || !json.every(isJsonChange)) return undefined;
  return { hash, json };
}

function isJsonChange(value: unknown): value is JsonChange {
  return isRecord(value) && isLines(value['path']) && 'value' in value;
}

function isLines(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((line) => typeof line === 'string');
}
