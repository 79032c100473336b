import type { CaptureState, ForgetFilter, Memory, MemoryRecord } from '../../ports/memory.ts';
import type { RequestLog } from '../../ports/request-log.ts';
import type { PlacedRecords } from '../state/ledger.ts';
import type { MemoryDesk } from '../../ports/memory-desk.ts';
import type { LocalStore } from '../../ports/local-store.ts';
import type { ProvenanceNote, ProvenanceStore } from '../../ports/provenance.ts';
import type { MemoryFailure } from '../../core/errors.ts';

/** A method of a port as a call of the store's thread: it gets the first parameter, and returns the result at once. */
type AtOnce<Method extends (input: never, ...rest: never[]) => Promise<unknown>> = (
  input: Parameters<Method>[0],
) => Awaited<ReturnType<Method>>;

type FromMemory = 'recall' | 'retrieve' | 'list' | 'page' | 'references' | 'moveSome' | 'hold';

type MemoryCalls = { readonly [Name in FromMemory]: AtOnce<Required<Memory>[Name]> };

export type DeskCalls = { readonly [Name in keyof MemoryDesk]: AtOnce<MemoryDesk[Name]> };

/** The calls that the main thread sends to the store's worker. Their parameters and results are plain data. */
export interface StoreCalls extends DeskCalls, MemoryCalls {
  warm(): void;
  /** `ownSecrets`: the secrets of svc's configuration, which no stored output may contain. */
  capture(given: {
    readonly records: readonly MemoryRecord[];
    readonly ownSecrets: readonly string[];
  }): readonly CaptureState[];
  /**
   * Applies the filter: deletes outputs, marks records for deletion, and writes tombstones for captures in the outbox.
   * Returns how many texts these are in all. Then call `forgetSome`, `emptyForgotten` and `eraseForgotten`.
   */
  beginForget(filter: ForgetFilter): number;
  /** Deletes some of the marked records. Returns their number; 0 if none is left. */
  forgetSome(): number;
  /**
   * Returns a text that identifies how far an unfinished deletion is; '' if there is none. Two equal texts mean that no
   * process has continued the deletion in between.
   */
  unended(): string;
  /**
   * Empties the recalled texts (blocks) in the ledger that quote forgotten texts, and deletes forgotten captures from
   * the outbox. Returns the number of the newest row of the table `forgetting`; 0 if the table is empty.
   */
  emptyForgotten(): number;
  /**
   * Erases forgotten texts from unused bytes of the files and from their logs. Then deletes the rows of `forgetting` up
   * to the number `last`. Returns false if another program reads a file; then it keeps these rows.
   */
  eraseForgotten(last: number): boolean;
  /** Returns the references of all records that blocks in the ledger quote, by space. */
  placed(input: undefined): PlacedRecords;
  /**
   * Empties the blocks that quote one of these records. Returns the number of blocks. Call `eraseForgotten` afterwards.
   */
  forgetPlaced(forgotten: ForgottenElsewhere): number;
  /** Returns those of the references that name a stored output. */
  heldOutputs(refs: readonly string[]): readonly string[];
  /**
   * Deletes the outputs of a space. It leaves no tombstones: these outputs are copies of outputs that a memory service
   * has stored, and svc may copy them again. Call `emptyForgotten` and `eraseForgotten` afterwards.
   */
  dropOutputs(space: string): void;
  /** Returns spaces that have outputs, the last used first. */
  outputSpaces(limit: number): readonly string[];
  /** Moves the write-ahead log of `memory.db` into the file. */
  emptyLog(): void;
  /** Deletes the oldest rows of the ledger, the acknowledgements and the request log. */
  pruneState(): void;
  /** Moves the write-ahead log of `state.db` into the file. */
  checkpointState(): void;
  listRequests: AtOnce<RequestLog['list']>;
  findRequests: AtOnce<RequestLog['find']>;
  conversationRequests: AtOnce<RequestLog['conversation']>;
  sumRequests: AtOnce<RequestLog['sum']>;
  quota: AtOnce<RequestLog['quota']>;
  trial: AtOnce<RequestLog['trial']>;
  keepProvenance(notes: readonly ProvenanceNote[]): number;
  listProvenance: AtOnce<ProvenanceStore['list']>;
  health: AtOnce<LocalStore['health']>;
  isWhole: AtOnce<LocalStore['isWhole']>;
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

export interface WorkerInput {
  readonly folder: string;
  /** Options for the worker's store, as plain data. */
  readonly extra?: unknown;
  /** Shared numbers of calls whose callers no longer wait. The number of a call is at the index `number % length`. */
  readonly aborted: Int32Array;
  /** Shared flags, at the indexes BUSY and STOPPING. */
  readonly control: Int32Array;
  readonly descriptors: Int32Array<SharedArrayBuffer>;
}

/** Records that a memory service has purged. */
export interface ForgottenElsewhere {
  readonly space: string;
  readonly refs: readonly string[];
}

/** Index of the flag that is 1 while the worker runs a call. */
export const BUSY = 0;
/** Index of the flag that is 1 when the process ends: then the worker begins no further call. */
export const STOPPING = 1;
