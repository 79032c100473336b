import type { NewObject } from './service-store.ts';

/** The data of a service on their way from a file to a server. */

/** Tables that are copied row by row, in this order: what a row names is there before it. */
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
] as const;
export type MovedTable = (typeof MOVED_TABLES)[number];

/** Columns by the server's names. Bytes are text: `\x` and hexadecimal digits. */
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
  /** Identifies the database: no two have the same. */
  readonly epoch: string;
  /** A purge that is half done must be over first. */
  readonly unfinishedPurges: number;
  rowsOf(table: MovedTable): Iterable<readonly MovedRow[]>;
  spaces(): readonly MovedSpace[];
  /** In the order of their commits, without the first `skip`. */
  recordsOf(space: MovedSpace, skip: number): Iterable<MovedBatch>;
  /** When each source was seen first and last. */
  sourcesOf(space: MovedSpace): Iterable<readonly MovedRow[]>;
  /** Purges, and what they took: kept out for good. */
  purgesOf(space: MovedSpace): Iterable<readonly MovedRow[]>;
  purgedOf(space: MovedSpace): Iterable<readonly MovedRow[]>;
  close(): void;
}

export interface MoveTarget {
  /** Throws MemoryError where another service's data are, or a move from another file. */
  begin(epoch: string): Promise<'new' | 'resumed' | 'done'>;
  addRows(table: MovedTable, rows: readonly MovedRow[]): Promise<void>;
  /** The number of records that it holds of a space. */
  recordsIn(space: MovedSpace): Promise<number>;
  addRecords(space: MovedSpace, batch: MovedBatch): Promise<void>;
  setSources(space: MovedSpace, rows: readonly MovedRow[]): Promise<void>;
  addPurges(space: MovedSpace, rows: readonly MovedRow[]): Promise<void>;
  addPurged(space: MovedSpace, rows: readonly MovedRow[]): Promise<void>;
  /** Digests of those that are not there with the bytes that they are made of. */
  wrongRecords(space: MovedSpace, digests: readonly string[]): Promise<readonly string[]>;
  /** Texts of receipts by tenant and id, in any order. */
  receipts(rows: readonly MovedRow[]): Promise<ReadonlyMap<string, string>>;
  count(table: MovedTable): Promise<number>;
  end(epoch: string): Promise<void>;
  close(): Promise<void>;
}
