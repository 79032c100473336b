import type { Connections } from './connections.ts';
import type { PendingPassages } from './pending-passages.ts';
import type { TermKeys } from './term-keys.ts';

/** The database as every part of a store has it: found, and with its tables as they must be. */
export interface OpenDatabase {
  readonly connections: Connections;
  /** Hashes words with the secret of this database. */
  readonly keys: TermKeys;
  readonly pending: PendingPassages;
}

export interface TenantPlace {
  readonly tenant: string;
  readonly database: () => Promise<OpenDatabase>;
  /** Canonical bytes that one space may hold. */
  readonly spaceBytesMax: number;
}
