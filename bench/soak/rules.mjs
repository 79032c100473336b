/** When a soak has failed. Nothing here depends on how fast the machine is. */

/**
 * The lowest sample of a quarter is what stays after a collection of garbage, and a leak raises it from
 * quarter to quarter. Between the second and the last quarter lies half of the run. There the floors of a
 * flat process differ by a few percent. Medians of neighbouring quarters hide a steady rise: a process that
 * went from 147 to 372 MB in 20,000 requests differed by 9 % there.
 */
const GROWTH_MAX = 0.1;

/** Journals that are emptied and begun anew are open or not when the descriptors are counted. */
const DESCRIPTORS_MORE = 4;

/** `curve`: resident MB, at equal distances of requests. */
export function memoryProblem(curve) {
  const quarter = curve.length / 4;
  const early = Math.min(...curve.slice(quarter, 2 * quarter));
  const late = Math.min(...curve.slice(3 * quarter));
  if (late <= early * (1 + GROWTH_MAX)) return undefined;
  return (
    `memory is not flat: at least ${early} MB in the second quarter, at least ${late} MB in the last one. ` +
    'It leaks, or a cache is not full yet: a longer run tells them apart'
  );
}

/** Both counted while nothing is asked of the program. */
export function descriptorProblem(before, after) {
  if (after <= before + DESCRIPTORS_MORE) return undefined;
  return `descriptors leak: ${before} were open at first, ${after} at the end`;
}
