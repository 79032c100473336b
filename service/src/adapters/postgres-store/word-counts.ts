import type { Connections } from './connections.ts';
import { RECALL } from './statements/recall.ts';

/** The number of passages of a space that contain a word, for frequent words: see `word_counts`. */
export interface WordCount {
  readonly space: number;
  /** As the database's bigint. */
  readonly key: string;
  readonly count: number;
  /** Passages of the space when it was counted. */
  readonly passages: number;
}

/**
 * Stores the word counts of a recall for later recalls, on every node and after a restart. They are
 * written after the answer, so no request waits. A lost count is computed again.
 */
export function keepCounts(
  connections: Connections,
  tenant: string,
  counts: readonly WordCount[],
): void {
  if (counts.length === 0) return;
  // In one order, so that two recalls never wait for each other.
  const sorted = counts.toSorted((a, b) => a.space - b.space || (a.key < b.key ? -1 : 1));
  connections.memory
    .write((rows) =>
      rows.run(
        RECALL.keepCounts,
        tenant,
        sorted.map(({ space }) => space),
        sorted.map(({ key }) => key),
        sorted.map(({ count }) => count),
        sorted.map(({ passages }) => passages),
      ),
    )
    .catch(() => undefined);
}
