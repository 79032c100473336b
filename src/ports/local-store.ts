import type { Memory } from './memory.ts';
import type { RequestLog } from './request-log.ts';

/** A store on this machine, for commands that check whether it is intact, and list what it contains. */
export interface LocalStore {
  readonly memory: Memory;
  /** The request log, which has a file of its own. */
  readonly requestLog: Pick<RequestLog, 'list'>;
  health(): Promise<StoreHealth>;
  /** Reads the whole file and returns false if it is inconsistent. */
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
