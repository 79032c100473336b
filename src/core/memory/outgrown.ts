/**
 * Says whether a memory is still valid, by the files that its exchange was about. svc does not understand files: a
 * changed file is a reason to check, and no proof that a statement is wrong.
 */

/** A file compared with its earlier state. `gone`: nothing or no plain file is at its path. */
export type FileVerdict = 'same' | 'changed' | 'gone' | 'unknown';

export type Holds = 'yes' | 'outgrown' | 'unknown';

/**
 * Combines the verdicts on the files. `isSameTree`: the memory is from the working tree in which the files are now
 * checked. Another working tree may never have had a missing file.
 */
export function holdsNow(verdicts: readonly FileVerdict[], isSameTree: boolean): Holds {
  const isOutgrown = verdicts.some((one) => one === 'changed' || (one === 'gone' && isSameTree));
  if (isOutgrown) return 'outgrown';
  return verdicts.length > 0 && verdicts.every((one) => one === 'same') ? 'yes' : 'unknown';
}
