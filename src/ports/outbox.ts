import type { MemoryRecord, SpeakerRole } from './memory.ts';

/** Where captures wait until the memory holds them. */
export interface Outbox {
  /**
   * Durable against a kill of the process when it returns (one synchronous write). Returns false
   * when nothing could be kept (disk full, read-only, over its bound): the request continues.
   */
  keep(records: readonly MemoryRecord<SpeakerRole>[]): boolean;
  /** Resolves when everything kept so far is in the memory, or after `withinMs`. */
  flush(withinMs: number): Promise<void>;
}
