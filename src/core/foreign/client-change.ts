import { isRecord } from '../bytes/json-fields.ts';
import type { TomlChange } from './toml-block.ts';

/** A change that svc made in a client's own file, recorded so that it can be undone. */

/** A key that was set, with its earlier value; no `before` if it was absent. */
export interface JsonChange {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly before?: unknown;
  /** True if `value` was appended to the list at `path`; `before` is the list without it. */
  readonly isItem?: true;
}

export interface ClientChange {
  /** Hash of the whole file after the change. If the file still has it, undo restores the backup. */
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
  /** The path by which the client opens the file. The file itself may be elsewhere, behind a link. */
  readonly named: string;
  /** True if there was no file before. */
  readonly isMade: boolean;
  /** The highest folder that was made for the file. */
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
