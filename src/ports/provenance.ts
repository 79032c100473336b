import type { SpokenRecord } from '../core/memory/record.ts';
import type { FileVerdict } from '../core/memory/outgrown.ts';

/**
 * Where memories come from: the folder, the commit and the files that an exchange concerned, and how
 * each file was then. It is kept in the database of this machine and nowhere else. It is never part
 * of a record, of a block, of an export or of a call to a memory service.
 */
export interface ProvenanceStore {
  /** Kept beside the first record that is held; notes without such a record are dropped. */
  keep(notes: readonly ProvenanceNote[]): Promise<void>;
  list(filter: ProvenanceFilter): Promise<readonly HeldProvenance[]>;
}

/** How a file was: what `stat` says of it, and a hash of its content. */
export interface FileState {
  readonly size: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs: number;
  readonly inode: number;
  readonly hash: string;
}

export interface ConcernedFile extends FileState {
  /** Relative to the root, with `/` between its parts. */
  readonly path: string;
}

export interface Provenance {
  /** The real path of the working tree, or of the folder where there is no repository. */
  readonly root: string;
  /** The commit that was checked out; '' when there was none. */
  readonly commit: string;
  readonly files: readonly ConcernedFile[];
}

export interface ProvenanceNote extends Provenance {
  readonly space: string;
  /** The records of the exchange, the one that states most first. */
  readonly digests: readonly string[];
}

export interface ProvenanceFilter {
  readonly space?: string;
  /** Only the exchanges of these records. */
  readonly refs?: readonly string[];
  /** `place` of the last one of the page before. */
  readonly after?: number;
  /** At most 1,000. */
  readonly limit: number;
}

export interface HeldProvenance extends Provenance {
  readonly place: number;
  readonly record: SpokenRecord;
}

/** Files of one exchange that are kept. Few exchanges state something about more. */
export const FILES_MAX = 12;
/** Limit of a path; the longest of real projects has a third of it. */
export const PATH_CHARS_MAX = 1024;

/**
 * The files of a project as they are now. Reading is bounded in files, bytes and time. Nothing is
 * read outside the project's root, nor through a link, and no program is started. Nothing here ever
 * rejects: what cannot be found out in time is unknown.
 */
export interface Code {
  /**
   * The plain files among these names, at most `FILES_MAX`, in the order of the names. A name may be
   * absolute or relative to the folder. Undefined when the folder cannot be read in time.
   */
  look(place: Workplace, names: readonly string[]): Promise<CodeNow | undefined>;
  /** One verdict a file, in their order. Takes no longer than `withinMs`. */
  compare(
    root: string,
    files: readonly ConcernedFile[],
    withinMs: number,
  ): Promise<readonly FileVerdict[]>;
}

/** The folder in which a client works, on this machine. */
export interface Workplace {
  /** As the client states it. */
  readonly folder: string;
  /** The real path of the working tree around it; nothing outside is read. */
  readonly root: string;
}

export interface CodeNow {
  /** The commit that is checked out; '' when there is none. */
  readonly commit: string;
  readonly files: readonly ConcernedFile[];
}
