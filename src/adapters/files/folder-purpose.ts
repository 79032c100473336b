import { readdirSync, type Stats } from 'node:fs';
import { shellQuote } from '../../core/foreign/shell-quote.ts';
import { FileError } from './file-error.ts';

/**
 * Knows the names of everything that svc makes in its folders. They decide whose modes svc restricts, what it
 * removes, and whether it may use an existing folder and change its mode (R40). It must never make private what
 * other programs use: /tmp, a home, a project.
 */

/** Each of these constants is a regular expression that matches whole names. */
const CONFIG = 'config\\.(?:json|lock)';
/** A hidden name may be in any folder, so it does not show the folder's purpose. */
const STAGED = '\\.writing-.*';
const CACHE = 'catalog\\.json';
/** Files of the data folder: the memories, and captures that are not stored yet. */
const MEMORY = '(?:memory\\.db|state\\.db|hosted_|projects\\.json).*|forgotten|replaced';
const DATA = '(?:ledger|outbox)-.*|proxy(?:-\\d+\\.json|\\.log)|ui-open\\.html';
const FOLDERS = 'outputs|client-files|cache';
/** Files of a team's memory service. They hold other people's data, so removing svc does not delete them. */
const SERVICE =
  'service(?:\\.(?:json|db.*))?|lock\\.db.*|pepper|running\\.json|.*\\.key|receipts_.*|restoring-.*';

/** The ending of a temporary file: the next content of a file, or a lock that is being removed. */
export const DRAFT = '\\.(?:[0-9a-f]{8}){1,2}';

/** Matches files that may be in any folder: hidden ones, and the file system's `lost+found`. */
const NEUTRAL_NAME = /^(?:\..*|lost\+found)$/;

/** Mode bit of a folder in which many users write, and each can remove only its own files. */
const STICKY = 0o1000;
/** Mode bits of the group and of others. */
const OTHERS = 0o077;

/** `inside`: within a folder of svc, so the content is svc's. `asked`: the user wants an empty folder private. */
export interface FolderKind {
  readonly inside?: boolean;
  readonly asked?: boolean;
}

/** Says whether the folder's mode must be restricted. Throws FileError for a folder that svc refuses to use. */
export function mustTighten(path: string, stat: Stats, kind: FolderKind = {}): boolean {
  if (process.platform === 'win32') return false;
  if ((stat.mode & STICKY) !== 0) throw refused(path, 'is shared with others');
  const isOpen = (stat.mode & OTHERS) !== 0;
  if (kind.inside === true) return isOpen;
  const names = readdirSync(path).filter((name) => !NEUTRAL_NAME.test(name));
  const ownName = withDrafts(CONFIG, CACHE, MEMORY, DATA, FOLDERS, SERVICE);
  const own = names.filter((name) => ownName.test(name)).length;
  if (own === 0 && names.length > 0) throw refused(path, 'contains other files');
  if (!isOpen) return false;
  if (own === names.length && (own > 0 || kind.asked === true)) return true;
  const mode = (stat.mode & 0o777).toString(8);
  throw new FileError(
    `${path} is open to others (mode 0${mode}), and svc did not create it.`,
    `Make it private: chmod 700 ${shellQuote(path, 'sh')}`,
  );
}

function refused(path: string, why: string): FileError {
  return new FileError(`${path} ${why}.`, 'Name a separate folder inside it.');
}

export function isFolderName(name: string): boolean {
  return whole(FOLDERS).test(name);
}

/** Returns a pattern for svc's names in one of the folders. The data folder may also hold the cache and a service. */
export function ownNamesIn(place: 'config' | 'cache' | 'data'): RegExp {
  switch (place) {
    case 'config':
      return withDrafts(CONFIG, STAGED);
    case 'cache':
      return withDrafts(CACHE);
    case 'data':
      return withDrafts(MEMORY, DATA, FOLDERS);
  }
}

/** Matches the names of files that stay when svc is removed. */
export function keptNames(keepMemory: boolean): RegExp {
  return keepMemory ? withDrafts(SERVICE, MEMORY) : withDrafts(SERVICE);
}

function withDrafts(...names: readonly string[]): RegExp {
  return whole(...names, `(?:${names.join('|')})${DRAFT}`);
}

function whole(...names: readonly string[]): RegExp {
  return new RegExp(`^(?:${names.join('|')})$`);
}
