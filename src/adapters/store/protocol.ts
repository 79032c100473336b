import type { TrialReport } from '../../core/meter/trial-report.ts';
import type { QuotaReport } from '../../core/meter/quota.ts';
import type {
  CaptureState,
  ForgetFilter,
  Holding,
  HoldQuestion,
  ListFilter,
  MemoryRecord,
  PageFilter,
  RecallAnswer,
  RecallQuestion,
  RecordKey,
  RecordPage,
  SpaceMove,
  SpaceMoved,
  SpokenRecord,
  StoredRecord,
} from '../../ports/memory.ts';
import type {
  ConversationFilter,
  RequestFilter,
  RequestList,
  RequestRow,
  RequestSum,
  SumFilter,
} from '../../ports/request-log.ts';
import type { PlacedRecords } from '../state/ledger.ts';
import type {
  ConversationPlace,
  DeskEdit,
  DeskFilter,
  DeskPage,
  DeskRecord,
  DeskRule,
  EditState,
  PinChange,
  RecallLook,
  RuleChange,
  RulesFilter,
  Shelf,
  ShelfDay,
  Sighting,
} from '../../ports/memory-desk.ts';
import type { StoreHealth } from '../../ports/local-store.ts';
import type { HeldProvenance, ProvenanceFilter, ProvenanceNote } from '../../ports/provenance.ts';
import type { MemoryFailure } from '../../core/errors.ts';

/** Declares the calls between the main thread and the store's worker; they carry plain data only. */

export interface StoreCalls {
  recall(question: RecallQuestion): RecallAnswer;
  warm(): void;
  /** `ownSecrets`: the secrets that no output may hold, which the store's thread does not know otherwise. */
  capture(given: {
    readonly records: readonly MemoryRecord[];
    readonly ownSecrets: readonly string[];
  }): readonly CaptureState[];
  retrieve(key: RecordKey): StoredRecord | undefined;
  list(filter: ListFilter): readonly SpokenRecord[];
  page(filter: PageFilter): RecordPage;
  references(start: string): readonly string[];
  /** Notes what is to be forgotten; call `forgetSome` to delete it, then `emptyForgotten`. */
  beginForget(filter: ForgetFilter): number;
  /** Deletes some of it and returns how many; 0 if nothing is left. */
  forgetSome(): number;
  moveSome(move: SpaceMove): SpaceMoved;
  /** Returns a text that changes with each part of a forgetting; empty if there is nothing to finish. */
  unended(): string;
  /** Empties the blocks that quote forgotten texts. Returns the last note about them; 0 if there is none. */
  emptyForgotten(): number;
  /**
   * Erases forgotten texts from the unused bytes of the files and from their logs, and deletes the notes up to the
   * given one. Returns false if it did nothing because another program reads a file.
   */
  eraseForgotten(last: number): boolean;
  /** Returns the references of all records that placed blocks quote, by space. */
  placed(input: undefined): PlacedRecords;
  /** Empties placed blocks that quote one of these records. Returns how many. Call `eraseForgotten` afterwards. */
  forgetPlaced(forgotten: ForgottenElsewhere): number;
  hold(question: HoldQuestion): readonly Holding[];
  /** Returns those of the references that name a stored output. */
  heldOutputs(refs: readonly string[]): readonly string[];
  /**
   * Deletes the outputs of a space without tombstones, because the memory that owns them may keep them. Call
   * `eraseForgotten` afterwards.
   */
  dropOutputs(space: string): void;
  /** Returns spaces that have outputs, the last used first. */
  outputSpaces(limit: number): readonly string[];
  /** Moves the memory's write-ahead log into its file. */
  emptyLog(): void;
  /** Deletes the oldest rows of the ledger and the request log. */
  pruneState(): void;
  /** Moves the write-ahead log of `state.db` into the file. */
  checkpointState(): void;
  listRequests(filter: RequestList): readonly RequestRow[];
  findRequests(filter: RequestFilter): readonly RequestRow[];
  conversationRequests(filter: ConversationFilter): readonly RequestRow[];
  sumRequests(filter: SumFilter): readonly RequestSum[];
  quota(now: number): readonly QuotaReport[];
  trial(since: number): TrialReport;
  shelves(): readonly Shelf[];
  days(space: string): readonly ShelfDay[];
  browse(filter: DeskFilter): DeskPage;
  look(question: RecallQuestion): RecallLook;
  beginnings(conversations: readonly ConversationPlace[]): readonly string[];
  sightings(refs: readonly string[]): readonly Sighting[];
  rules(filter: RulesFilter): readonly DeskRule[];
  markRule(change: RuleChange): boolean;
  pin(change: PinChange): boolean;
  edit(change: DeskEdit): EditState;
  restore(records: readonly DeskRecord[]): number;
  keepProvenance(notes: readonly ProvenanceNote[]): number;
  listProvenance(filter: ProvenanceFilter): readonly HeldProvenance[];
  health(): StoreHealth;
  /** Reads the whole file and returns false if it is inconsistent. */
  isWhole(): boolean;
  close(): void;
}

export type StoreCallName = keyof StoreCalls;

export interface StoreRequest {
  readonly number: number;
  /** The name of a call of this worker; every worker has 'close'. */
  readonly name: string;
  readonly input: unknown;
}

export type StoreResponse =
  | { readonly kind: 'answer'; readonly number: number; readonly value: unknown }
  | {
      readonly kind: 'failure';
      readonly number: number;
      readonly reason: MemoryFailure;
      readonly message: string;
    }
  | { readonly kind: 'report'; readonly line: string }
  | { readonly kind: 'replaced' };

/** The `extra` of a second worker that only answers reads while the first is late. */
export const HELPER = 'helper';

export interface WorkerInput {
  readonly folder: string;
  /** Plain data for the store of another kind of worker. */
  readonly extra?: unknown;
  /** Slot `number % length` holds the number of a call whose caller no longer waits. */
  readonly aborted: Int32Array;
  /** Two flags, at the indexes BUSY and STOPPING. */
  readonly control: Int32Array;
  readonly descriptors: Int32Array<SharedArrayBuffer>;
}

/** Records that a memory service has purged. */
export interface ForgottenElsewhere {
  readonly space: string;
  readonly refs: readonly string[];
}

/** Index of a flag: 1 while the worker is inside SQLite. */
export const BUSY = 0;
/** Index of a flag: 1 when the process ends, so that the worker begins no further call. */
export const STOPPING = 1;
