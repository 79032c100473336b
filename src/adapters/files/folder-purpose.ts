import { readdirSync, type Stats } from 'node:fs';
import { shellQuote } from '../../core/foreign/shell-quote.ts';
import { FileError } from './file-error.ts';

/**
 * Lists the names of what svc makes in its folders and leaves there. These names decide which modes svc restricts, what
 * `svc uninstall` removes from a folder at an unusual place, and whether svc may use an existing folder and restrict
 * its mode. svc must never restrict a folder that other programs use: /tmp, a home folder, a project.
 */

// Each of these constants is the source of a regular expression that matches whole names.
const CONFIG = 'config\\.(?:json|lock)';
/** Folders in which the configuration is written; see config-writer.ts. */
const STAGED = '\\.writing-.*';
const CACHE = 'catalog\\.json';
/**
 * Files of the data folder that `svc uninstall --keep-memory` keeps: memories, waiting captures, known projects, the
 * hook key, and the files of marks.ts.
 */
const MEMORY =
  '(?:memory\\.db|state\\.db|hosted_|projects\\.json).*|forgotten|replaced|hook\\.key(?:-\\d+)?';
const DATA = '(?:ledger|outbox)-.*|proxy(?:-\\d+\\.json|\\.log)|ui-open\\.html';
const FOLDERS = 'outputs|client-files|cache';
/** Files of a memory service. They contain other people's data, so `svc uninstall` does not remove them. */
const SERVICE =
  'service(?:\\.(?:json|db.*))?|lock\\.db.*|pepper|running\\.json|(?!hook\\.).*\\.key|receipts_.*|restoring-.*';

/** The ending of a temporary file: the new content of a file (replace-file.ts), or a stale lock (file-lock.ts). */
export const DRAFT = '\\.(?:[0-9a-f]{8}){1,2}';

/** Matches names that say nothing about a folder's purpose: hidden ones, and the file system's `lost+found`. */
const NEUTRAL_NAME = /^(?:\..*|lost\+found)$/;

/** The sticky bit: many users write in this folder, and each can remove only their own files. */
const STICKY = 0o1000;
/** Mode bits of the group and of others. */
export const OTHERS = 0o077;

/**
 * `inside`: the folder is inside a folder of svc, so its content is svc's. `asked`: the user has asked svc to restrict
 * this folder, even if it is empty.
 */
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

/** Returns a pattern for the names of the entries that svc makes in one of its folders. */
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

/** Returns a pattern for the names of entries that stay when svc is uninstalled. */
export function keptNames(keepMemory: boolean): RegExp {
  return keepMemory ? withDrafts(SERVICE, MEMORY) : withDrafts(SERVICE);
}

function withDrafts(...names: readonly string[]): RegExp {
  return whole(...names, `(?:${names.join('|')})${DRAFT}`);
}

function whole(...names: readonly string[]): RegExp {
  return new RegExp(`^(?:${names.join('|')})$`);
}
