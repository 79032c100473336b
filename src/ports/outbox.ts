import type { MemoryRecord, SpeakerRole } from './memory.ts';

/** Stores captures until the memory has stored them. */
export interface Outbox {
  /**
   * Stores captures in one synchronous write, so that they survive a kill of the process. While another process locks
   * the file, they wait in RAM. Returns false if they could not be written (disk full, read-only, bound reached); that
   * must not fail the request.
   */
  keep(records: readonly MemoryRecord<SpeakerRole>[]): boolean;
  /** Resolves when all captures so far are in the memory, or after `withinMs` milliseconds. */
  flush(withinMs: number): Promise<void>;
}
