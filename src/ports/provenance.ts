import type { SpokenRecord } from '../core/memory/record.ts';
import type { FileVerdict } from '../core/memory/outgrown.ts';

/**
 * Stores where memories come from: the folder, the commit and the files that an exchange was about, with the state of
 * each file at that time. Provenance is stored only in the database of this machine. It is never part of a record, a
 * block, an export or a call to a memory service.
 */
export interface ProvenanceStore {
  /** Stores each note with the first of its records that exists, and drops a note whose records all are missing. */
  keep(notes: readonly ProvenanceNote[]): Promise<void>;
  list(filter: ProvenanceFilter): Promise<readonly HeldProvenance[]>;
}

/** The state of a file: its `stat`, and a hash of its content. */
export interface FileState {
  readonly size: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
  readonly inode: number;
  readonly hash: string;
}

export interface ConcernedFile extends FileState {
  /** The path relative to the root, with `/` between its parts. */
  readonly path: string;
}

export interface Provenance {
  /** The real path of the working tree, or of the folder if it has no repository. */
  readonly root: string;
  /** The commit that was checked out; '' if there was none or svc could not find it. */
  readonly commit: string;
  readonly files: readonly ConcernedFile[];
}

export interface ProvenanceNote extends Provenance {
  readonly space: string;
  /** The records of the exchange, the most informative first. */
  readonly digests: readonly string[];
}

export interface ProvenanceFilter {
  readonly space?: string;
  /** Lists only the exchanges of these records. */
  readonly refs?: readonly string[];
  /** The `place` of the last element of the previous page. */
  readonly after?: number;
  /** Bound on elements, at most 1,000. */
  readonly limit: number;
}

export interface HeldProvenance extends Provenance {
  /** Increases from element to element of a list. */
  readonly place: number;
  readonly record: SpokenRecord;
}

/** Bound on the files that are stored for an exchange. Few exchanges are about more files. */
export const FILES_MAX = 12;
/** Longest path in characters. Paths in real projects hardly ever have more than a third of that. */
export const PATH_CHARS_MAX = 1024;

/**
 * Reads the present files of a project, within bounds on files, bytes and time. It reads nothing outside the project's
 * root, except the commit in git's own folder, and nothing through a link, and starts no program. No method rejects:
 * what cannot be found out in time is unknown.
 */
export interface Code {
  /**
   * Returns the states of the regular files among these names, in their order, at most `FILES_MAX`. A name may be
   * absolute or relative to the folder. Undefined if the folder cannot be read in time.
   */
  look(place: Workplace, names: readonly string[]): Promise<CodeNow | undefined>;
  /** Returns one verdict per file, in order, within `withinMs` milliseconds. */
  compare(
    root: string,
    files: readonly ConcernedFile[],
    withinMs: number,
  ): Promise<readonly FileVerdict[]>;
}

/** The folder in which a client works, on this machine. */
export interface Workplace {
  readonly folder: string;
  /** The real path of the working tree that contains it; nothing outside is read. */
  readonly root: string;
}

export interface CodeNow {
  /** The commit that is checked out; '' if there is none or svc cannot find it. */
  readonly commit: string;
  readonly files: readonly ConcernedFile[];
}
