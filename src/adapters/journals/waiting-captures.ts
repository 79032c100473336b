import { readRecord } from '../../core/memory/record.ts';
import { OUTBOX_NAME } from './outbox.ts';
import { journalNames, readJournals } from './journal.ts';

/** Unacknowledged captures in all outboxes of a data folder, of any proxy. */
export interface WaitingCaptures {
  readonly target: 'store' | 'service';
  readonly records: number;
  /** The bytes of their texts. */
  readonly bytes: number;
  /** When the first of them was kept: milliseconds since 1970. */
  readonly since: number;
}

const SERVICE_OUTBOX = /^hosted_outbox_[0-9a-f]{16}$/;

/** One entry for each memory that something waits for. An outbox that cannot be read is left out. */
export function findWaiting(folder: string): readonly WaitingCaptures[] {
  return journalNames(folder).flatMap((name) => {
    if (name !== OUTBOX_NAME && !SERVICE_OUTBOX.test(name)) return [];
    const records = readJournals({ folder, name }).flatMap((value) => readRecord(value) ?? []);
    if (records.length === 0) return [];
    return {
      target: name === OUTBOX_NAME ? ('store' as const) : ('service' as const),
      records: records.length,
      bytes: records.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0),
      since: records.reduce((first, { at }) => Math.min(first, at), Infinity),
    };
  });
}
