/**
 * Judges by the files that an exchange was about whether its memory is still valid. svc only compares files: a changed
 * file is a reason to check a memory, and no proof that the memory is wrong.
 */

/** A file compared with its earlier state. `gone`: nothing or no plain file is at its path. */
export type FileVerdict = 'same' | 'changed' | 'gone' | 'unknown';

/** Whether a memory is still valid. 'outgrown': one of its files has changed or is gone, so the memory may be wrong. */
export type Holds = 'yes' | 'outgrown' | 'unknown';

/**
 * Combines the verdicts on all files of a memory. `isSameTree`: the memory is from the working tree in which svc now
 * checks the files. Another working tree may never have had a file that is gone.
 */
export function holdsNow(verdicts: readonly FileVerdict[], isSameTree: boolean): Holds {
  const isOutgrown = verdicts.some((one) => one === 'changed' || (one === 'gone' && isSameTree));
  if (isOutgrown) return 'outgrown';
  return verdicts.length > 0 && verdicts.every((one) => one === 'same') ? 'yes' : 'unknown';
}
