import type { Item } from '../conversation/view.ts';
import { referenceOf } from '../memory/reference.ts';
import type { ItemTools, ToolOutput } from './outputs.ts';

/**
 * Counts how often a left-out text was read again by its reference, output after output. The count at
 * an output depends on what precedes it alone, so it is the same in every later request.
 */
export class ReadCounts {
  /** By the reference under which a text left first. */
  readonly #times = new Map<string, number>();
  /** The answer of a reading is a text of its own, and leaves under a reference of its own. */
  readonly #origins = new Map<string, string>();

  copy(): ReadCounts {
    const copy = new ReadCounts();
    for (const [origin, times] of this.#times) copy.#times.set(origin, times);
    for (const [reference, origin] of this.#origins) copy.#origins.set(reference, origin);
    return copy;
  }

  /** `references`: those that the output's call names. How often its text has been read, this time too. */
  count(references: readonly string[], digest: string): number {
    if (references.length === 0) {
      return this.#times.size === 0 ? 0 : (this.#times.get(this.#origin(referenceOf(digest))) ?? 0);
    }
    const origins = [...new Set(references.map((reference) => this.#origin(reference)))];
    let most = 0;
    for (const origin of origins) {
      const times = (this.#times.get(origin) ?? 0) + 1;
      this.#times.set(origin, times);
      most = Math.max(most, times);
    }
    const own = referenceOf(digest);
    const [first = own] = origins.filter((origin) => this.#times.get(origin) === most);
    if (first !== own) this.#origins.set(own, first);
    return most;
  }

  #origin(reference: string): string {
    return this.#origins.get(reference) ?? reference;
  }
}

/**
 * How many calls that the end of the request answers have read one of these left-out outputs again.
 * Each call counts in the one request that brings its answer.
 */
export function countReadings(
  items: readonly Item[],
  elided: readonly ToolOutput[],
  toolsOf: (item: Item) => ItemTools,
): number {
  const references = new Set(elided.map(({ digest }) => referenceOf(digest)));
  // A client may add a note of its own behind the answers.
  const calling = items.findLastIndex(({ role }) => role === 'assistant');
  const answered = new Set(items.slice(calling + 1).flatMap((item) => item.toolResultIds));
  if (answered.size === 0) return 0;
  let count = 0;
  for (let at = calling; (items[at]?.toolCalls.length ?? 0) > 0; at -= 1) {
    const item = items[at];
    const calls = item === undefined ? [] : toolsOf(item).calls;
    count += calls.filter(
      (call) => answered.has(call.id) && call.references.some((one) => references.has(one)),
    ).length;
  }
  return count;
}
