import type { NewObject } from './service-store.ts';

/** Copies the data of a service from a SQLite file to a database server. */

/** Tables that are copied row by row. The order puts a row before the rows that refer to it. */
export const MOVED_TABLES = [
  'plans',
  'tenants',
  'master_keys',
  'secrets',
  'signing_keys',
  'service_keys',
  'admins',
  'providers',
  'account_settings',
  'audit_heads',
  'audit',
  'usage_days',
  'receipt_heads',
  'receipts',
  'tenant_ledger',
  'tenant_spaces',
] as const;
/**
 * Tables that are copied after the records. The time at which a source was first seen also says what was purged of
 * it, and purged records must never return.
 */
export const TABLES_BEHIND = ['sources', 'purges', 'purged'] as const;
export type MovedTable = (typeof MOVED_TABLES)[number] | (typeof TABLES_BEHIND)[number];

/** A row by the server's column names. Bytes are text: `\x` and hexadecimal digits. */
export type MovedRow = Readonly<Record<string, string | number | boolean | null>>;

export interface MovedSpace {
  readonly tenant: string;
  readonly space: string;
  readonly records: number;
}

/** Records that were taken in at one moment. */
export interface MovedBatch {
  readonly now: number;
  readonly objects: readonly NewObject[];
}

export interface MoveSource {
  /** The id of the database. No two databases have the same. */
  readonly epoch: string;
  /** A purge that is half done must be over first. */
  readonly unfinishedPurges: number;
  rowsOf(table: MovedTable): Iterable<readonly MovedRow[]>;
  spaces(): readonly MovedSpace[];
  /** Returns the records in the order of their commits, without the first `skip`. */
  recordsOf(space: MovedSpace, skip: number): Iterable<MovedBatch>;
  close(): void;
}

export interface MoveTarget {
  /**
   * Starts or resumes the move. Throws MemoryError if the server already holds another service's data, or a move
   * from another file.
   */
  begin(epoch: string): Promise<'new' | 'resumed' | 'done'>;
  addRows(table: MovedTable, rows: readonly MovedRow[]): Promise<void>;
  /** Returns the number of records that the target holds of a space. */
  recordsIn(space: MovedSpace): Promise<number>;
  addRecords(space: MovedSpace, batch: MovedBatch): Promise<void>;
  /** Returns the digests of records that are missing in the target, or whose bytes there are different. */
  wrongRecords(space: MovedSpace, digests: readonly string[]): Promise<readonly string[]>;
  /** Returns the texts of receipts by tenant and id, in any order. */
  receipts(rows: readonly MovedRow[]): Promise<ReadonlyMap<string, string>>;
  count(table: MovedTable): Promise<number>;
  end(epoch: string): Promise<void>;
  close(): Promise<void>;
}
