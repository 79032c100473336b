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

/** The calls between the main thread and the store's worker. Only plain data crosses. */

/** Every call: what goes in, what comes out. */
export interface StoreCalls {
  recall(question: RecallQuestion): RecallAnswer;
  warm(): void;
  capture(records: readonly MemoryRecord[]): readonly CaptureState[];
  retrieve(key: RecordKey): StoredRecord | undefined;
  list(filter: ListFilter): readonly SpokenRecord[];
  page(filter: PageFilter): RecordPage;
  references(start: string): readonly string[];
  /** Notes what is to be forgotten; `forgetSome` deletes it, and `emptyForgotten` follows. */
  beginForget(filter: ForgetFilter): number;
  /** Returns how many it has deleted; 0 when none is left. */
  forgetSome(): number;
  moveSome(move: SpaceMove): SpaceMoved;
  /** Changes with each part of a forgetting; empty where none is to be ended. */
  unended(): string;
  /** Empties the blocks that quote what was forgotten. Returns the last note about it; 0 where there is none. */
  emptyForgotten(): number;
  /**
   * Takes what was forgotten out of the unused bytes of the files and out of their logs, and deletes the
   * notes up to the given one. False: nothing was done, because another program reads a file.
   */
  eraseForgotten(last: number): boolean;
  /** The references of all records that placed blocks quote, by space. */
  placed(input: undefined): PlacedRecords;
  /** Empties the placed blocks that quote one of these records. Returns how many. `eraseForgotten` is to follow. */
  forgetPlaced(forgotten: ForgottenElsewhere): number;
  hold(question: HoldQuestion): readonly Holding[];
  /** The references among these that name a stored output. */
  heldOutputs(refs: readonly string[]): readonly string[];
  /**
   * Takes the outputs of a space out, without tombstones: where they belong they may be held on.
   * `eraseForgotten` is to follow.
   */
  dropOutputs(space: string): void;
  /** Spaces that have outputs, used last first. */
  outputSpaces(limit: number): readonly string[];
  /** Moves the write-ahead log of the memory into its file. */
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
  /** Reads the whole file; false when it contradicts itself. */
  isWhole(): boolean;
  close(): void;
}

export type StoreCallName = keyof StoreCalls;

export interface StoreRequest {
  readonly number: number;
  /** A call that this worker knows; every worker knows 'close'. */
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

/** The extra of a worker that only answers reads while the first one is late. */
export const HELPER = 'helper';

export interface WorkerInput {
  readonly folder: string;
  /** Plain data for this worker's own store. */
  readonly extra?: unknown;
  /** Slot `number % length` holds the number of a call whose caller stopped waiting. */
  readonly aborted: Int32Array;
  /** Two flags, at BUSY and STOPPING. */
  readonly control: Int32Array;
  /** Slots of the process's Descriptors. */
  readonly descriptors: Int32Array<SharedArrayBuffer>;
}

/** Records that a memory service has purged. */
export interface ForgottenElsewhere {
  readonly space: string;
  readonly refs: readonly string[];
}

/** 1 while the worker is inside SQLite. */
export const BUSY = 0;
/** 1 when the process ends: the worker begins nothing any more. */
export const STOPPING = 1;
