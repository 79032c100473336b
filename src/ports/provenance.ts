import type { SpokenRecord } from '../core/memory/record.ts';

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
/** The longest path of real projects is a third of it. */
export const PATH_CHARS_MAX = 1024;
