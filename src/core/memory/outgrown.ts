/**
 * Says whether a memory still holds, by the files that its exchange concerned. svc does not understand
 * the files: a changed one is a reason to look, and no proof that a statement is wrong. Pure.
 */

/** A file now, beside what it was. `gone`: at its place is nothing, or no plain file. */
export type FileVerdict = 'same' | 'changed' | 'gone' | 'unknown';

export type Holds = 'yes' | 'outgrown' | 'unknown';

/**
 * `isSameTree`: the files were checked in the same working tree as then. A different working tree
 * may never have had a missing file.
 */
export function holdsNow(verdicts: readonly FileVerdict[], isSameTree: boolean): Holds {
  const isOutgrown = verdicts.some((one) => one === 'changed' || (one === 'gone' && isSameTree));
  if (isOutgrown) return 'outgrown';
  return verdicts.length > 0 && verdicts.every((one) => one === 'same') ? 'yes' : 'unknown';
}
