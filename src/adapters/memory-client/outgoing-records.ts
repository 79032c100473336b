import { setImmediate as nextRound } from 'node:timers/promises';
import { type Outgoing, outgoingRecord } from '../../core/memory-api/record-items.ts';
import type { MemoryRecord } from '../../ports/memory.ts';

/**
 * Converts records, in order, to the form in which a service gets them; undefined for one that must not be stored.
 * It lets the event loop run before each record, because searching an output of 100 kB for secrets takes 25 ms.
 */
export async function outgoingRecords(
  records: readonly MemoryRecord[],
): Promise<readonly (Outgoing | undefined)[]> {
  const outgoing: (Outgoing | undefined)[] = [];
  for (const record of records) {
    // oxlint-disable-next-line no-await-in-loop -- One record in each turn of the event loop.
    await nextRound();
    outgoing.push(outgoingRecord(record));
  }
  return outgoing;
}
