import type { Memory } from './memory.ts';
import type { RequestLog } from './request-log.ts';

/** A store on this machine, for `svc doctor`, which checks whether it is intact. */
export interface LocalStore {
  readonly memory: Memory;
  /** The request log, which is not in the memory's file but in `state.db`. */
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
  readonly records: number;
  readonly passages: number;
  /** The size of the database with its write-ahead log. */
  readonly bytes: number;
}
