/** When a soak has failed. Nothing here depends on how fast the machine is. */

/**
 * All caches are bounded and are full by the half of a run, so from then on memory only rises and falls
 * with collections of garbage. A leak goes on growing: it shows between the third quarter of a run and the
 * last one. Medians leave single collections out; what is left of the noise is a few percent.
 */
const GROWTH_MAX = 0.1;

/** Journals that are emptied and begun anew are open or not when the descriptors are counted. */
const DESCRIPTORS_MORE = 4;

/** `curve`: resident MB, at equal distances of requests. */
export function memoryProblem(curve) {
  const third = median(curve.slice(curve.length / 2, (curve.length * 3) / 4));
  const last = median(curve.slice((curve.length * 3) / 4));
  if (last <= third * (1 + GROWTH_MAX)) return undefined;
  return `memory grows on: ${third} MB in the third quarter, ${last} MB in the last one`;
}

/** Both counted while nothing is asked of the program. */
export function descriptorProblem(before, after) {
  if (after <= before + DESCRIPTORS_MORE) return undefined;
  return `descriptors leak: ${before} were open at first, ${after} at the end`;
}

function median(numbers) {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
