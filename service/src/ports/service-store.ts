import type { NewObject, ObjectKind } from '../core/objects.ts';
import type { AuditNote } from '../core/audit.ts';
import type {
  CoverageEntry,
  MemoryItem,
  PurgeReceipt,
  PurgeScope,
  Source,
  StoredObject,
} from '../../../src/core/memory-api/contract.ts';
import type { LeaseStore, Caller, ServiceControl, TenantControl } from './control-store.ts';
import type { LedgerRow } from '../../../src/ports/ledger.ts';
import type {
  RecalledExchange,
  RecalledSession,
  RecallQuestion,
} from '../../../src/ports/memory.ts';
import type { ReceiptStore, TenantReceipts } from './receipt-store.ts';

export type { NewObject, ObjectKind } from '../core/objects.ts';

/**
 * The store of a service, on an SQLite file or on PostgreSQL. It answers in the forms of the memory contract
 * (src/core/memory-api/contract.ts). The memory of a tenant is reached only through `of`, so no query can forget whose
 * rows it asks for. The other methods serve all tenants.
 *
 * Every method may reject with MemoryError: 'timeout' if its signal fires or the store's own deadline is over,
 * otherwise 'unavailable'. Outcomes that the contract expects are values, not errors.
 */
export interface ServiceStore extends ServiceControl, ReceiptStore {
  /** True if several processes may serve from the store at once. */
  readonly isShared: boolean;
  /**
   * Returns one tenant's part of the store. It finds, changes and counts nothing of another tenant, but refuses a new
   * key whose id any tenant has.
   */
  of(tenant: string): TenantStore;
  /**
   * Finds the caller by its key, among the keys of all tenants, because the key says which tenant calls. Undefined if
   * no tenant has this key id, or two have it.
   */
  findCaller(keyId: string, signal: AbortSignal): Promise<Caller | undefined>;
  /** Lists the purges of all tenants that have not finished, such as those that a crash interrupted. */
  unfinishedPurges(): Promise<readonly TenantPurge[]>;
  /** Deletes expired rows. On PostgreSQL it also drops and makes the day tables of receipts and audit events. */
  keepDays(kept: KeptDays): Promise<void>;
  health(): Promise<ServiceStoreHealth>;
  close(): Promise<void>;
}

/** What `keepDays` deletes. All times are milliseconds since 1970. */
export interface KeptDays {
  readonly now: number;
  /** True if the clock may be wrong. Then nothing is deleted by its age. */
  readonly isUnsure?: true;
  /** The time before which no tenant keeps receipts; undefined if a tenant keeps them for ever. */
  readonly receiptsFrom?: number;
  /** Audit events before this time are deleted. The hash for the next event of a tenant is stored in another table. */
  readonly auditFrom?: number;
}

/**
 * Keys, spaces, records and purges of one tenant. The caller has checked that each record's digest fits its bytes. When
 * a write resolves, its data are visible to every later read of any process, and on disk. A power cut may lose only
 * leases, ledger rows, stored answers, times of use and the signals of recalls.
 */
export interface TenantStore extends TenantControl, TenantReceipts, LeaseStore {
  /** Returns the state of a space; generation 0 and no records if it was never written. Creates no space. */
  spaceState(space: string, signal: AbortSignal): Promise<SpaceState>;
  /**
   * Stores records in one transaction. The results say which records were refused; the others are on disk when the call
   * resolves.
   */
  capture(batch: CaptureBatch, signal: AbortSignal): Promise<CaptureOutcome>;
  /**
   * Recalls records from one consistent snapshot. A candidate in state 'durable' has a proof that was computed now from
   * the stored bytes. SQLite and PostgreSQL give the same items in the same order after the same captures and recalls.
   */
  recall(question: ServiceQuestion, signal: AbortSignal): Promise<ServiceAnswer>;
  /** Returns whole records. A name without a record, or whose record does not fit, is in `missing` with the reason. */
  retrieve(question: RetrieveQuestion, signal: AbortSignal): Promise<RetrieveAnswer>;
  /**
   * Lists items, with words the best first, otherwise the newest. Tool outputs are listed only for the kind
   * 'tool_output', and always newest first.
   */
  listItems(filter: ItemFilter, signal: AbortSignal): Promise<readonly MemoryItem[]>;
  /** Returns the digest of an item's record; undefined if there is none. */
  findItem(asked: ItemKey, signal: AbortSignal): Promise<string | undefined>;
  /** Lists sources, the last seen first. */
  listSources(filter: PageFilter, signal: AbortSignal): Promise<readonly Source[]>;

  /**
   * Begins a purge. One transaction changes the generation, empties the recalled blocks in the ledger that quote the
   * space, and stores the purge. `continuePurge` then erases the records. A dry run only counts them.
   */
  beginPurge(order: PurgeOrder): Promise<PurgeReceipt>;
  /**
   * Erases some records of a purge, so that other calls run in between. Returns true once the purge has finished. An
   * SQLite file then holds no byte of the purged records; PostgreSQL removes them by its vacuum. Rejects with
   * 'unavailable' while an older reader of the SQLite file keeps bytes in it: call it again later.
   */
  continuePurge(purgeId: string, now: number): Promise<boolean>;
  /** Finds a purge. Its receipt is kept after its records are gone. */
  findPurge(purgeId: string, signal: AbortSignal): Promise<PurgeReceipt | undefined>;
  /** Lists purges, newest first. */
  listPurges(filter: PageFilter, signal: AbortSignal): Promise<readonly PurgeReceipt[]>;

  /** Returns the rows of the ledger with these keys. */
  findLedger(keys: readonly string[]): Promise<readonly LedgerRow[]>;
  /** Stores ledger rows. A row replaces an older row with its key, but a row with `isOnce` replaces none. */
  recordLedger(rows: readonly LedgerRow[]): Promise<void>;

  /** Finds the answer that is stored for an Idempotency-Key; undefined if there is none, or it is older than a day. */
  findAnswer(asked: AnswerKey, signal: AbortSignal): Promise<KeptAnswer | undefined>;
  /** Begins the work of a call with an Idempotency-Key. Over all nodes only one call at a time may do this work. */
  beginAnswer(asked: AnswerKey, begun: BegunAnswer): Promise<AnswerState>;
  /** Stores the answer and ends the work that `beginAnswer` began. A power cut may lose the answer without harm. */
  keepAnswer(asked: AnswerKey, answer: KeptAnswer): Promise<void>;
  /** Ends the work that `beginAnswer` began, without an answer. */
  leaveAnswer(asked: AnswerKey, holder: string): Promise<void>;
}

export interface BegunAnswer {
  /** Identifies the call; no two calls ever have the same holder. */
  readonly holder: string;
  readonly requestHash: string;
  /** Milliseconds after which another call may begin the work, unless this holder calls `beginAnswer` again before. */
  readonly ms: number;
}

export type AnswerState =
  | { readonly state: 'begun' }
  /** Another call does the work now. */
  | { readonly state: 'running'; readonly requestHash: string }
  | { readonly state: 'kept'; readonly answer: KeptAnswer };

export interface TenantPurge {
  readonly tenant: string;
  readonly purgeId: string;
}

export interface SpaceState {
  readonly space: string;
  /** `g`, the epoch, a full stop, and the space's counter, which purges raise. Compare it only for equality. */
  readonly generation: string;
  readonly commit_seq: number;
  readonly records: number;
}

export interface CaptureBatch {
  readonly space: string;
  /** The generation that the space must have; otherwise nothing is written. Undefined accepts any generation. */
  readonly ifGeneration: string | undefined;
  readonly objects: readonly NewObject[];
  readonly now: number;
}

/**
 * 'quota': the space is full, or it would be one space too many. 'plan': the tenant has as many records as its plan
 * allows.
 */
export type ObjectState = 'durable' | 'duplicate' | 'purged' | 'ref_collision' | 'quota' | 'plan';

export interface CaptureOutcome {
  readonly state: SpaceState;
  /** One result for each object. Undefined if the generation differed, so nothing was written. */
  readonly results: readonly ObjectState[] | undefined;
}

/** The question of a recall with proofs. `excludeDigests` and `candidates` are digests of records or of texts. */
export interface ServiceQuestion extends Omit<RecallQuestion, 'humanText'> {
  /** The prompt; undefined if only proofs are asked for. */
  readonly humanText: string | undefined;
  /** Further spaces to search. Candidates are looked for in `space` only. */
  readonly otherSpaces: readonly string[];
  readonly itemsMax: number;
  readonly kinds: readonly string[] | undefined;
  readonly scoreMin: number;
  readonly candidates: readonly string[];
  /** The key of every proof: 32 bytes. */
  readonly nonce: Uint8Array;
  readonly ifGeneration: string | undefined;
  /** Milliseconds since 1970. A search, or a group of proofs, that has not begun by then is left out. */
  readonly deadlineAt: number;
}

export interface ServiceAnswer {
  readonly state: SpaceState;
  /** Standing instructions, then other found items, best first. Only the instructions if the question has `agent`. */
  readonly items: readonly MemoryItem[];
  readonly exchanges?: readonly RecalledExchange[];
  readonly sessions?: readonly RecalledSession[];
  /** One result for each candidate, in order. */
  readonly coverage: readonly CoverageEntry[];
  /** True if `itemsMax` left out items that match the question. */
  readonly isTruncated: boolean;
  /** True if the deadline, or a purge that still erases records, left something out. */
  readonly isPartial: boolean;
}

/** Chooses spaces by name or by glob: `*` matches any characters. */
export type SpaceChoice =
  | { readonly space: string }
  /** Undefined means all spaces. */
  | { readonly globs: readonly string[] | undefined };

export interface RetrieveQuestion {
  readonly spaces: SpaceChoice;
  /** Names of records: the reference or the digest of a record, or of the text of a record that has only one. */
  readonly refs: readonly string[];
  readonly bytesMax: number;
}

export type MissingReason = 'unknown' | 'purged' | 'over_max_bytes';

export interface RetrieveAnswer {
  /** The state of the space; undefined if no single space was asked for. */
  readonly state: SpaceState | undefined;
  readonly objects: readonly StoredObject[];
  readonly missing: readonly { readonly ref: string; readonly reason: MissingReason }[];
}

export interface PageFilter {
  readonly spaces: SpaceChoice;
  readonly limit: number;
  /** The number of elements before the page. */
  readonly offset: number;
}

export interface ItemFilter extends PageFilter {
  readonly kind: ObjectKind | undefined;
  readonly role: 'user' | 'assistant' | undefined;
  readonly session: string | undefined;
  readonly sourceId: string | undefined;
  readonly refs: readonly string[] | undefined;
  readonly since: number | undefined;
  readonly until: number | undefined;
  readonly words: string | undefined;
}

export interface ItemKey {
  readonly space: string;
  readonly itemId: string;
}

export interface PurgeOrder {
  /** The id: `prg_` and 26 characters. */
  readonly purgeId: string;
  readonly space: string;
  readonly scope: PurgeScope;
  readonly isDryRun: boolean;
  readonly requestedBy: string;
  readonly now: number;
  /** The audit event, which is written in the same transaction. A dry run writes none. */
  readonly note?: AuditNote;
}

/** An Idempotency-Key belongs to the service key that sent it. */
export interface AnswerKey {
  readonly keyId: string;
  readonly idempotencyKey: string;
}

export interface KeptAnswer {
  /** SHA-256 of the request, base64url. */
  readonly requestHash: string;
  readonly body: string;
  readonly at: number;
}

export interface ServiceStoreHealth {
  /** The database with its version, for people. */
  readonly engine: string;
  readonly spaces: number;
  readonly records: number;
  /** The number of keys that are not revoked. Some of them may have expired. */
  readonly keys: number;
  readonly tenants: number;
  readonly providers: number;
  /** When the newest key or record was stored, in milliseconds since 1970; 0 if there are none. */
  readonly newestAt: number;
  /** Size of the database, on SQLite with its write-ahead log. */
  readonly bytes: number;
}

export interface BackupFacts {
  readonly file: string;
  readonly records: number;
  readonly bytes: number;
}

/** How many keys and admin tokens were revoked, and records purged, since the backup. A restore does not undo that. */
export interface CarriedOver {
  readonly revoked: number;
  readonly purged: number;
}

export interface RestoreFacts {
  readonly records: number;
  /**
   * Revocations and purges since the backup; undefined if the present database cannot be read or has the tables of
   * another version.
   */
  readonly carried: CarriedOver | undefined;
  readonly epoch: string;
  /** Where the previous database was moved to; undefined if there was none. */
  readonly kept: string | undefined;
}

export interface ServerFacts {
  readonly version: string;
  readonly host: string;
  /** True if a commit waits until a standby has the commit too. */
  readonly isSynchronous: boolean;
  readonly standbys: readonly StandbyFacts[];
}

export interface StandbyFacts {
  readonly name: string;
  readonly isStreaming: boolean;
  readonly isSynchronous: boolean;
}
