import type { FileVerdict } from '../core/memory/outgrown.ts';
import type { ConcernedFile } from './provenance.ts';

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
