import type { Memory } from './memory.ts';

/** A store on this machine, as a command looks at it: whether it is whole, and what it holds. */
export interface LocalStore {
  readonly memory: Memory;
  health(): Promise<StoreHealth>;
  /** Reads the whole file; false when it contradicts itself. */
  isWhole(): Promise<boolean>;
  close(): Promise<void>;
}

export interface StoreHealth {
  readonly driver: string;
  readonly sqliteVersion: string;
  readonly journalMode: string;
  readonly file: string;
  readonly spaces: number;
  readonly records: number;
  readonly passages: number;
  /** Size of the database and its write-ahead log. */
  readonly bytes: number;
  /** Milliseconds from the start of the worker until the first query could run. */
  readonly openMs: number;
}
