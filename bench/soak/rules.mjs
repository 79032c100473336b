/** When a soak has failed. Nothing here depends on how fast the machine is. */
import { median } from '../lib/statistics.mjs';

/**
 * Requests after which every cache of the product has been full: the largest hold 20,000 entries, and each request of the
 * soak adds one.
 */
const FULL_REQUESTS = 25_000;

/**
 * Live bytes a request by which a thread may grow after that. Words that the thread knows and compiled code moved the main
 * thread's by 31 and 82 in two runs of 40,000 requests without a leak; with a leak of 200 bytes a request it was 240.
 */
const GROWTH_MAX = 150;

/** Share by which resident memory may grow after that: a leak outside of the heaps, such as of SQLite, shows only there. */
const RESIDENT_GROWTH_MAX = 0.1;

/** Samples of a part. Fewer would let one cache that was just emptied decide. */
const PART_SAMPLES = 5;

/** Journals that are emptied and begun anew are open or not when the descriptors are counted. */
const DESCRIPTORS_MORE = 4;

const MB = 1024 * 1024;

/**
 * Compares the first third of the samples with full caches to the last third. `samples`: at equal distances, after `done`
 * requests the live bytes of `main` and `store`, and the resident `mb`.
 */
export function memoryVerdict(samples) {
  const full = samples.filter(({ done }) => done >= FULL_REQUESTS);
  const size = Math.floor(full.length / 3);
  if (size < PART_SAMPLES) {
    const reason = `caches fill until ${FULL_REQUESTS} requests, and ${full.length} samples after them are too few`;
    return { lines: [`Memory is not judged: ${reason}.`], problems: [] };
  }
  const [early, late] = [full.slice(0, size), full.slice(-size)];
  const parts = [early, late].map((part) => `${part[0].done} to ${part.at(-1).done}`);
  const middle = (part, name) => median(part.map((sample) => sample[name]));
  const requests = middle(late, 'done') - middle(early, 'done');
  const [lines, problems] = [[`Compared: after ${parts[0]} requests, and after ${parts[1]}.`], []];
  for (const thread of ['main', 'store']) {
    const [before, after] = [middle(early, thread), middle(late, thread)];
    const growth = Math.round((after - before) / requests);
    lines.push(
      `${thread}: ${mb(before)}, then ${mb(after)} live MB: ${growth} bytes a request, at most ${GROWTH_MAX}`,
    );
    if (growth > GROWTH_MAX) problems.push(`memory leaks in the ${thread} thread`);
  }
  const [before, after] = [middle(early, 'mb'), middle(late, 'mb')];
  lines.push(`resident: ${before}, then ${after} MB, at most ${RESIDENT_GROWTH_MAX * 100} % more`);
  if (after > before * (1 + RESIDENT_GROWTH_MAX)) problems.push('resident memory grows');
  return { lines, problems };
}

function mb(bytes) {
  return (bytes / MB).toFixed(1);
}

/** Both counted while nothing is asked of the program. */
export function descriptorProblem(before, after) {
  if (after <= before + DESCRIPTORS_MORE) return undefined;
  return `descriptors leak: ${before} were open at first, ${after} at the end`;
}
