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
  'tenant_spaces',
] as const;
/**
 * Those that are copied behind the records. When a source was seen first says also what was purged of it;
 * what was purged is kept out for good.
 */
export const TABLES_BEHIND = ['sources', 'purges', 'purged'] as const;
export type MovedTable = (typeof MOVED_TABLES)[number] | (typeof TABLES_BEHIND)[number];

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
  close(): void;
}

export interface MoveTarget {
  /** Throws MemoryError where another service's data are, or a move from another file. */
  begin(epoch: string): Promise<'new' | 'resumed' | 'done'>;
  addRows(table: MovedTable, rows: readonly MovedRow[]): Promise<void>;
  /** The number of records that it holds of a space. */
  recordsIn(space: MovedSpace): Promise<number>;
  addRecords(space: MovedSpace, batch: MovedBatch): Promise<void>;
  /** Digests of those that are not there with the bytes that they are made of. */
  wrongRecords(space: MovedSpace, digests: readonly string[]): Promise<readonly string[]>;
  /** Texts of receipts by tenant and id, in any order. */
  receipts(rows: readonly MovedRow[]): Promise<ReadonlyMap<string, string>>;
  count(table: MovedTable): Promise<number>;
  end(epoch: string): Promise<void>;
  close(): Promise<void>;
}
