import { setImmediate as nextRound } from 'node:timers/promises';
import { type Outgoing, outgoingRecord } from '../../core/memory-api/record-items.ts';
import type { MemoryRecord } from '../../ports/memory.ts';

/**
 * Makes the items of records, in order; undefined for one that no memory stores. Each record has its own round of the
 * event loop, because searching an output of 100 kB for secrets takes 25 ms.
 */
export async function outgoingRecords(
  records: readonly MemoryRecord[],
): Promise<readonly (Outgoing | undefined)[]> {
  const outgoing: (Outgoing | undefined)[] = [];
  for (const record of records) {
    // oxlint-disable-next-line no-await-in-loop -- One record in each round.
    await nextRound();
    outgoing.push(outgoingRecord(record));
  }
  return outgoing;
}
