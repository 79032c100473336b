import type { NewObject, ObjectKind } from '../core/objects.ts';
import type { AuditNote } from '../core/audit.ts';
import type { MemoryRecord } from '../../../src/core/memory/record.ts';
import type { LeaseStore, Caller, ServiceControl, TenantControl } from './control-store.ts';
import type { LedgerRow } from '../../../src/ports/ledger.ts';
import type { AgentFacts, RecalledExchange, RecalledSession } from '../../../src/ports/memory.ts';
import type { ReceiptStore, TenantReceipts } from './receipt-store.ts';

export type { NewObject, ObjectKind } from '../core/objects.ts';

/**
 * The store of the memory service. One implementation is a SQLite file; nothing here says so, so
 * that a database server can follow. The rows of a tenant are reached through `of` alone, so no query
 * can forget whose rows it asks for.
 *
 * Every method may fail with MemoryError ('timeout' when its signal fires, 'unavailable'
 * otherwise). Outcomes that the contract expects are values, not errors.
 */
export interface ServiceStore extends ServiceControl, ReceiptStore {
  /** Several processes may serve from it at once. */
  readonly isShared: boolean;
  /** One tenant's part of the store. Nothing of another tenant is found, changed or counted by it. */
  of(tenant: string): TenantStore;
  /** The one look-up that no tenant binds: the key says which tenant calls. */
  findCaller(keyId: string, signal: AbortSignal): Promise<Caller | undefined>;
  /** Purges that a crash left half done, of every tenant. */
  unfinishedPurges(): Promise<readonly TenantPurge[]>;
  /** Creates tables for the next days, and drops those of expired days. */
  keepDays(kept: KeptDays): Promise<void>;
  health(): Promise<ServiceStoreHealth>;
  close(): Promise<void>;
}

/** Milliseconds since 1970. */
export interface KeptDays {
  readonly now: number;
  /** No tenant keeps an earlier receipt. */
  readonly receiptsFrom?: number;
  /**
   * Earlier events are deleted, except the last one of each tenant, because the chain continues
   * from it.
   */
  readonly auditFrom?: number;
}

/**
 * Keys, spaces, records and purges of one tenant. A record arrives checked: its digest is that of its
 * bytes. What a resolved write says is on disk, and every later read of any process sees it, unless the
 * method says otherwise.
 */
export interface TenantStore extends TenantControl, TenantReceipts, LeaseStore {
  /** A space that was never written has generation 0 and no records. Reading makes no space. */
  spaceState(space: string, signal: AbortSignal): Promise<SpaceState>;
  /** All or nothing, on disk and recalled by the next question when it resolves. */
  capture(batch: CaptureBatch, signal: AbortSignal): Promise<CaptureOutcome>;
  /**
   * The answer sees one moment. `durable` means that the proof was made now, from the stored bytes of this
   * space. Two engines with the same records give the same items in the same order.
   */
  recall(question: ServiceQuestion, signal: AbortSignal): Promise<ServiceAnswer>;
  /** Each record as it came, byte for byte. Every name that gives none is in `missing`, with the reason. */
  retrieve(question: RetrieveQuestion, signal: AbortSignal): Promise<RetrieveAnswer>;
  /** With words best first, else newest first. Tool outputs only where their kind is asked for. */
  listItems(filter: ItemFilter, signal: AbortSignal): Promise<readonly ServiceItem[]>;
  /** The digest of the record that an item is of. */
  findItem(asked: ItemKey, signal: AbortSignal): Promise<string | undefined>;
  /** The last seen first. */
  listSources(filter: PageFilter, signal: AbortSignal): Promise<readonly ServiceSource[]>;

  /**
   * In one transaction the generation changes, the blocks that quote the space are emptied, and the purge
   * is on record. A dry run changes nothing. `continuePurge` erases the records.
   */
  beginPurge(order: PurgeOrder): Promise<Purge>;
  /**
   * Erases a bounded part, so that recalls pass in between. True when no byte of the records is left in
   * any file. 'unavailable' while a reader of an earlier moment keeps bytes in a file: call it again.
   */
  continuePurge(purgeId: string, now: number): Promise<boolean>;
  /** Purges stay on record after their records are gone. */
  findPurge(purgeId: string, signal: AbortSignal): Promise<Purge | undefined>;
  /** Newest first. */
  listPurges(filter: PageFilter, signal: AbortSignal): Promise<readonly Purge[]>;

  /** Rows of the ledger with these keys. */
  findLedger(keys: readonly string[]): Promise<readonly LedgerRow[]>;
  /** A row that is written once stays as it was first. A purge empties the recalled blocks before it. */
  recordLedger(rows: readonly LedgerRow[]): Promise<void>;

  /** Undefined for an answer that is older than a day. */
  findAnswer(asked: AnswerKey, signal: AbortSignal): Promise<KeptAnswer | undefined>;
  /** One call works on an answer at a time, on whichever node. */
  beginAnswer(asked: AnswerKey, begun: BegunAnswer): Promise<AnswerState>;
  /** Keeps the answer, and ends what `beginAnswer` began. A power cut may take it: nothing depends on it. */
  keepAnswer(asked: AnswerKey, answer: KeptAnswer): Promise<void>;
  /** Ends what `beginAnswer` began, without an answer. */
  leaveAnswer(asked: AnswerKey, holder: string): Promise<void>;
}

export interface BegunAnswer {
  /** Names the call among all that ever were. */
  readonly holder: string;
  readonly requestHash: string;
  /** Milliseconds after which another call may begin, unless `renewLease` is called meanwhile. */
  readonly ms: number;
}

export type AnswerState =
  | { readonly state: 'begun' }
  /** Another call works on it. */
  | { readonly state: 'running'; readonly requestHash: string }
  | { readonly state: 'kept'; readonly answer: KeptAnswer };

export interface TenantPurge {
  readonly tenant: string;
  readonly purgeId: string;
}

export interface SpaceState {
  readonly space: string;
  /** `g`, the epoch, a point, the counter. Compared for equality only. */
  readonly generation: string;
  readonly commitSeq: number;
  readonly records: number;
}

export interface CaptureBatch {
  readonly space: string;
  /** Writes nothing if the space has another generation; undefined means the current one. */
  readonly ifGeneration: string | undefined;
  readonly objects: readonly NewObject[];
  readonly now: number;
}

/** 'quota': the space is full. 'plan': the tenant has as many records as its plan allows. */
export type ObjectState = 'durable' | 'duplicate' | 'purged' | 'ref_collision' | 'quota' | 'plan';

export interface CaptureOutcome {
  /** After the batch. */
  readonly state: SpaceState;
  /** Undefined: the generation did not fit, and nothing was written. Else one for each object. */
  readonly results: readonly ObjectState[] | undefined;
}

export interface ServiceQuestion {
  readonly space: string;
  /** Searched too, never proven. */
  readonly otherSpaces: readonly string[];
  /** Spaces in which the same project was kept before: searched as its own. */
  readonly olderSpaces?: readonly string[];
  /** Undefined: only proofs are asked for. */
  readonly text: string | undefined;
  /** The most recent text before it, with less weight. */
  readonly recent: string;
  /** Digests of records or of texts; `candidates` too. */
  readonly excludeDigests: readonly string[];
  readonly tokensMax: number;
  readonly itemsMax: number;
  readonly kinds: readonly string[] | undefined;
  readonly scoreMin: number;
  readonly candidates: readonly string[];
  /** 32 bytes; the key of every proof. */
  readonly nonce: Uint8Array;
  readonly ifGeneration: string | undefined;
  /** Milliseconds since 1970: what is not done by then is left out. */
  readonly deadlineAt: number;
  readonly now: number;
  /** Set for an agent: it gets lines of whole exchanges, as from the memory port. */
  readonly agent?: AgentFacts;
}

type CoverageState = 'durable' | 'unknown' | 'purged' | 'stale_generation' | 'not_checked';

export interface Coverage {
  readonly digest: string;
  readonly state: CoverageState;
  /** With 'durable': canonical bytes, the proof, and the reference. */
  readonly bytes?: number;
  readonly pop?: string;
  readonly ref?: string;
}

/** Where something stored came from. */
export interface Origin {
  readonly digest: string;
  readonly ref: string;
  readonly space: string;
  readonly textDigest?: string;
  readonly sourceId: string;
  readonly session: string;
  readonly client: string;
  readonly observedAt: number;
  readonly position: number;
  readonly fingerprint: string;
  readonly branch?: string;
  readonly source?: MemoryRecord['source'];
}

export interface ServiceItem {
  readonly itemId: string;
  readonly kind: ObjectKind;
  readonly role: 'user' | 'assistant' | 'tool';
  readonly text: string;
  /** The text is the whole of a record that holds exactly one. */
  readonly isVerbatim: boolean;
  /** From 0 to 1; only where something was asked. */
  readonly score?: number;
  readonly createdAt: number;
  readonly origin: Origin;
}

export interface ServiceAnswer {
  readonly state: SpaceState;
  /** Best first; for an agent the standing instructions alone. */
  readonly items: readonly ServiceItem[];
  readonly exchanges?: readonly RecalledExchange[];
  readonly sessions?: readonly RecalledSession[];
  /** One for each candidate, in order. */
  readonly coverage: readonly Coverage[];
  /** More would have fitted the question than the budget. */
  readonly isTruncated: boolean;
  /** The deadline left something out. */
  readonly isPartial: boolean;
}

/** Spaces by name or by glob: `*` matches any characters. */
export type SpaceChoice =
  | { readonly space: string }
  /** All when undefined. */
  | { readonly globs: readonly string[] | undefined };

export interface RetrieveQuestion {
  readonly spaces: SpaceChoice;
  /** References, text references or digests, also those of texts. */
  readonly refs: readonly string[];
  readonly bytesMax: number;
}

export interface StoredObject {
  readonly kind: ObjectKind;
  readonly bytes: Uint8Array;
  readonly toolName?: string;
  readonly origin: Origin;
}

export type MissingReason = 'unknown' | 'purged' | 'over_max_bytes';

export interface RetrieveAnswer {
  /** State of the space, where one was named. */
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

export interface ServiceSource {
  readonly sourceId: string;
  readonly space: string;
  readonly session: string;
  readonly client: string;
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly records: number;
  readonly bytes: number;
}

export type PurgeScope =
  | { readonly all: true }
  | { readonly session_id: string }
  | { readonly source_id: string }
  | { readonly before: string }
  | { readonly digests: readonly string[] };

export interface PurgeOrder {
  /** `prg_` and 26 characters. */
  readonly purgeId: string;
  readonly space: string;
  readonly scope: PurgeScope;
  readonly isDryRun: boolean;
  readonly requestedBy: string;
  readonly now: number;
  /** Is recorded in the same transaction, unless nothing is purged. */
  readonly note?: AuditNote;
}

export interface Purge {
  readonly purgeId: string;
  readonly space: string;
  readonly scope: PurgeScope;
  readonly state: 'dry_run' | 'tombstoned' | 'erased';
  readonly records: number;
  readonly items: number;
  readonly bytes: number;
  readonly generationBefore: string;
  readonly generationAfter: string;
  readonly requestedBy: string;
  readonly requestedAt: number;
  readonly erasedAt?: number;
}

/** An Idempotency-Key belongs to the service key that sent it. */
export interface AnswerKey {
  readonly keyId: string;
  readonly idempotencyKey: string;
}

export interface KeptAnswer {
  /** sha256 of the request, base64url. */
  readonly requestHash: string;
  /** The answer's JSON text. */
  readonly body: string;
  readonly at: number;
}

export interface ServiceStoreHealth {
  /** The database with its version, for people. */
  readonly engine: string;
  readonly spaces: number;
  readonly records: number;
  /** Not revoked; some may have expired. */
  readonly keys: number;
  readonly tenants: number;
  readonly providers: number;
  /** Milliseconds since 1970 of what was written last; 0 when nothing was. */
  readonly newestAt: number;
  /** Size of the database and its write-ahead log. */
  readonly bytes: number;
}

export interface BackupFacts {
  readonly file: string;
  readonly records: number;
  readonly bytes: number;
}

/** A restore must not undo these: keys revoked and records purged since the backup was made. */
export interface CarriedOver {
  readonly revoked: number;
  readonly purged: number;
}

export interface RestoreFacts {
  /** In the backup. */
  readonly records: number;
  /** Revocations and purges made since; undefined when the present database cannot be read. */
  readonly carried: CarriedOver | undefined;
  readonly epoch: string;
  /** Where the database went that was there before. */
  readonly kept: string | undefined;
}

/** A database server as a person wants to know it. */
export interface ServerFacts {
  readonly version: string;
  readonly host: string;
  /** A commit waits until a standby has it. */
  readonly isSynchronous: boolean;
  readonly standbys: readonly StandbyFacts[];
}

export interface StandbyFacts {
  readonly name: string;
  readonly isStreaming: boolean;
  readonly isSynchronous: boolean;
}
