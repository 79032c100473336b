import type { MemoryRecord, SpeakerRole } from './memory.ts';

/** Holds captures until the memory has stored them. */
export interface Outbox {
  /**
   * Stores captures in one synchronous write, so that they survive a kill of the process. Returns false if they
   * could not be stored (disk full, read-only, bound reached); the request continues.
   */
  keep(records: readonly MemoryRecord<SpeakerRole>[]): boolean;
  /** Resolves when all captures so far are in the memory, or after `withinMs`. */
  flush(withinMs: number): Promise<void>;
}
