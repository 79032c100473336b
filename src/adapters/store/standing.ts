import { STANDING_TERMS, standingIn, standingNow } from '../../core/recall/standing.ts';
import type { RecalledPassage } from '../../ports/memory.ts';
import type { RecallSource, Space } from './recall-source.ts';
import { type Steps, together } from './steps.ts';

/** Passages of the person's that are read, the newest of those that hold the words. */
const READ_MAX = 48;

/** The person's standing instructions in these spaces, without those of the `excluded` digests. */
export function* standingInstructions(
  source: RecallSource,
  spaces: readonly Space[],
  excluded: readonly string[],
): Steps<RecalledPassage[]> {
  const found = yield* together(
    spaces.map((space) => source.saidWith(space, STANDING_TERMS, READ_MAX)),
  );
  const without = new Set(excluded);
  const said = found
    .flat()
    .filter(({ digest }) => !without.has(digest))
    .flatMap(({ text, ...record }) =>
      standingIn(text).map((sentence) => ({ ...record, text: sentence, score: 0 })),
    );
  return standingNow(said);
}
