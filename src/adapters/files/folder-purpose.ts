import { readdirSync, type Stats } from 'node:fs';
import { shellQuote } from '../../core/foreign/shell-quote.ts';
import { FileError } from './file-error.ts';

/**
 * Decides whether svc may keep its files in a folder that was there already, and whether it may change
 * the folder's mode (R40). It must never make private what other programs use: /tmp, a home, a project.
 */

/** Everything that svc itself puts into its data, configuration, cache and service folders. */
const OWN_NAME =
  /^(?:config\.(?:json|lock)|catalog\.json|memory\.db.*|(?:outbox|ledger|hosted)[-_].*|proxy-\d+\.json|proxy\.log|projects\.json.*|ui-open\.html|outputs|client-files|forgotten|replaced|cache|service|service\.(?:json|db.*)|pepper|running\.json|lock\.db.*|.*\.key)$/;
/** Hidden files are put anywhere by anyone, and `lost+found` into each file system. */
const NEUTRAL_NAME = /^(?:\..*|lost\+found)$/;

/** Many users write in such a folder, and remove only what is theirs. */
const STICKY = 0o1000;
/** Everything that the group or others may do. */
const OTHERS = 0o077;

/**
 * `inside`: it stands in a folder of svc's, so whatever it holds is svc's. `asked`: the person said that an
 * empty folder shall be made private.
 */
export interface FolderKind {
  readonly inside?: boolean;
  readonly asked?: boolean;
}

/**
 * Whether the folder's mode must be tightened, and may be. Throws FileError for a folder that svc
 * refuses to use.
 */
export function mustTighten(path: string, stat: Stats, kind: FolderKind = {}): boolean {
  if (process.platform === 'win32') return false;
  if ((stat.mode & STICKY) !== 0) {
    throw new FileError(`${path} is shared with others.`, 'Name a folder of its own inside it.');
  }
  const isOpen = (stat.mode & OTHERS) !== 0;
  if (kind.inside === true) return isOpen;
  const names = readdirSync(path).filter((name) => !NEUTRAL_NAME.test(name));
  const own = names.filter((name) => OWN_NAME.test(name)).length;
  if (own === 0 && names.length > 0) {
    throw new FileError(`${path} holds other things.`, 'Name a folder of its own inside it.');
  }
  if (!isOpen) return false;
  if (own === names.length && (own > 0 || kind.asked === true)) return true;
  const mode = (stat.mode & 0o777).toString(8);
  throw new FileError(
    `${path} is open to others (mode 0${mode}), and svc did not make it.`,
    `Make it private: chmod 700 ${shellQuote(path, 'sh')}`,
  );
}
