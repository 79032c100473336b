import type { RecallAnswer } from '../ports/memory.ts';
import type { QuotedAnswer } from '../ports/texts.ts';
import { holdsNow } from '../core/memory/outgrown.ts';
import type { Code, Workplace } from '../ports/code.ts';
import { GLOBAL_SPACE } from '../core/request/space.ts';

/** The files that are compared, those of the best exchange first. */
const CHECKED_MAX = 40;

export interface Checking {
  readonly workplace: Workplace | undefined;
  readonly code: Code | undefined;
  /** 20 files on a disk that answers take half a millisecond. */
  readonly withinMs: number;
}

/** Marks the exchanges that the code has outgrown since they were said. Never rejects. */
export async function checkAnswer(
  answer: RecallAnswer,
  { workplace, code, withinMs }: Checking,
): Promise<QuotedAnswer> {
  const { exchanges = [] } = answer;
  if (workplace === undefined || code === undefined) return answer;
  const { root } = workplace;
  const asked = exchanges
    .flatMap((exchange) => (exchange.provenance?.files ?? []).map((file) => ({ exchange, file })))
    // These come from other projects, whose files are not here.
    .filter(({ exchange }) => exchange.space !== GLOBAL_SPACE)
    .slice(0, CHECKED_MAX);
  if (asked.length === 0) return answer;
  const files = asked.map(({ file }) => file);
  const verdicts = await code.compare(root, files, withinMs);
  const checked = exchanges.map((one) => {
    const own = verdicts.filter((_, at) => asked[at]?.exchange === one);
    const isOutgrown = holdsNow(own, one.provenance?.root === root) === 'outgrown';
    return isOutgrown ? { ...one, isOutgrown: true as const } : one;
  });
  return { ...answer, exchanges: checked };
}
