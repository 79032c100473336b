import type {
  MemoryMarks,
  MemoryRecord,
  RecalledPassage,
  SpeakerRole,
  SpokenRecord,
  StoredRecord,
} from '../core/memory/record.ts';
import type { AgentFacts, RecalledExchange, RecalledSession } from '../core/recall/agent-facts.ts';
import type { Provenance } from './provenance.ts';

export type {
  MemoryRecord,
  RecalledPassage,
  SpeakerRole,
  SpokenRecord,
  StoredRecord,
} from '../core/memory/record.ts';
export type { AgentFacts, RecalledExchange, RecalledSession } from '../core/recall/agent-facts.ts';

/**
 * Stores memories. One contract for the embedded store, the hosted service and the fake; the suite in test/ports
 * tests all of them. Every method may fail with MemoryError, and that never fails the model request.
 */
export interface Memory {
  readonly supports: MemorySupport;
  /** Returns the best memories first. Searches only `space` and the space 'global'. */
  recall(question: RecallQuestion, signal: AbortSignal): Promise<RecallAnswer>;
  /**
   * Stores records, one state each, in order; they are durable when it resolves. The same digest in the same space
   * is stored once. Tool outputs are kept apart: they are neither searched nor listed, and one with a secret is
   * rejected.
   */
  capture(records: readonly MemoryRecord[], signal: AbortSignal): Promise<readonly CaptureState[]>;
  /** Returns the exact stored text by digest or reference; undefined if not stored. */
  retrieve(key: RecordKey, signal: AbortSignal): Promise<StoredRecord | undefined>;
  list(filter: ListFilter, signal: AbortSignal): Promise<readonly SpokenRecord[]>;
  /** Returns the whole references with this beginning, of records and outputs; at most REFERENCES_MAX, in order. */
  references(start: string, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Forgets memories and leaves tombstones, so that they are not captured again. Resolves to their number. A filter
   * by words also covers outputs in the embedded store; other memories have no index of outputs.
   */
  forget(
    filter: ForgetFilter,
    signal: AbortSignal,
    /** Called after each part of the work. */
    progress?: (forgotten: number, all: number) => void,
  ): Promise<number>;
  /**
   * Proves which outputs and records the memory holds now: one answer per stored digest of this space, in any order,
   * none for others. Each proof is computed from the stored text itself.
   */
  hold(question: HoldQuestion, signal: AbortSignal): Promise<readonly Holding[]>;
  /**
   * Returns a version that stays the same as long as no proven text can have been deleted by any process. Undefined
   * if that is not certain now. It examines the files at each call. Memories over a network have no version, so they
   * prove every request anew.
   */
  holdVersion?(): number | undefined;
  /**
   * Moves part of a space to another, with outputs and tombstones. Call it until it moves nothing. Only the embedded
   * store can: a service would copy and forget.
   */
  moveSome?(move: SpaceMove, signal: AbortSignal): Promise<SpaceMoved>;
  /**
   * Returns all memories with their marks, page by page. No memory is skipped because others are forgotten or
   * repeated meanwhile. Only the embedded store has pages.
   */
  page?(filter: PageFilter, signal: AbortSignal): Promise<RecordPage>;
  /** Reports that a proof was false: the memory is not asked for so many milliseconds. */
  distrust?(milliseconds: number): void;
  close(): Promise<void>;
}

/** The methods of a memory that a model request uses. */
export type RequestMemory = Pick<
  Memory,
  'supports' | 'recall' | 'capture' | 'hold' | 'holdVersion' | 'distrust'
>;

/** Bound on references: more than a user would choose from. */
export const REFERENCES_MAX = 10;

export interface SpaceMove {
  readonly from: string;
  readonly to: string;
  /** The memories to move, which later captures do not bring back to `from`; undefined: the whole space. */
  readonly refs?: readonly string[];
}

/** The number of memories that have left their space. */
export interface SpaceMoved {
  readonly memories: number;
  readonly outputs: number;
}

export interface HoldQuestion {
  readonly space: string;
  readonly digests: readonly string[];
  /** The key of the proofs: 32 fresh random bytes, so that an earlier answer proves nothing. */
  readonly nonce: Uint8Array;
}

export interface Holding {
  readonly digest: string;
  /** `textProof(nonce, role, text)` of core/shortening/proofs.ts. */
  readonly proof: string;
}

/** What the memory can do. It may change while the proxy runs: the rights of a hosted memory depend on its key. */
export interface MemorySupport {
  readonly kind: 'embedded' | 'hosted' | 'fake';
  readonly read: boolean;
  readonly write: boolean;
}

export interface RecallQuestion {
  readonly space: string;
  /** Spaces that held the memories of this project earlier. */
  readonly olderSpaces?: readonly string[];
  /** The user's prompt with secrets masked. */
  readonly humanText: string;
  /** The last visible text of the assistant, with less weight: "ok, do it" says nothing alone. */
  readonly assistantText: string;
  /** Digests of texts that the request already holds, which must not be returned. */
  readonly excludeDigests: readonly string[];
  /** Estimated tokens that the block may take. */
  readonly tokensMax: number;
  /** Milliseconds since 1970, for "yesterday" in a question; not used to prefer newer memories. */
  readonly now: number;
  /**
   * Set for an agent. Agents have tools and look things up themselves, so they get few short lines of whole
   * exchanges, and only sometimes. A chat without tools gets passages, because it has nothing else. A memory that
   * does not support exchanges ignores this and returns passages.
   */
  readonly agent?: AgentFacts;
}

export interface RecallAnswer {
  readonly passages: readonly RecalledPassage[];
  /** For an agent's question: lines of exchanges, best first. `passages` are standing instructions in this case. */
  readonly exchanges?: readonly LocatedExchange[];
  /** For an agent's question that asks for a list: sessions that most likely matter, best first. */
  readonly sessions?: readonly RecalledSession[];
  /** The generation of the searched space; undefined for a memory without generations. */
  readonly generation?: string;
}

export interface LocatedExchange extends RecalledExchange {
  /**
   * The folder and the files that the exchange was about; undefined if unknown. It stays on this machine, and is
   * never part of a block.
   */
  readonly provenance?: RecalledProvenance;
}

export type RecalledProvenance = Pick<Provenance, 'root' | 'files'>;

/** The result for one record. 'forgotten': a tombstone prevents storing it. */
export type CaptureState = 'stored' | 'duplicate' | 'forgotten' | 'rejected';

export type RecordKey =
  | { readonly ref: string }
  | { readonly digest: string; readonly space: string };

export interface ListFilter {
  /** The space; undefined means all spaces. */
  readonly space?: string;
  /** Words to find, best matches first; undefined: list the newest first. */
  readonly words?: string;
  readonly role?: SpeakerRole;
  readonly conversation?: string;
  /** Lists only these references. One may name a record in each of several spaces. */
  readonly refs?: readonly string[];
  readonly since?: number;
  readonly until?: number;
  /** Bound on records, at most 1,000. */
  readonly limit: number;
  readonly offset?: number;
}

export interface PageFilter {
  /** The space; undefined means all spaces. */
  readonly space?: string;
  /** The `next` of the previous page. */
  readonly before?: number;
  /** Bound on records, at most 1,000. */
  readonly limit: number;
}

export interface RecordPage {
  readonly records: readonly (SpokenRecord & MemoryMarks)[];
  /** Where the next page begins; undefined for an empty page. */
  readonly next: number | undefined;
}

export type ForgetFilter =
  /** Forgets these references, in every space if `space` is undefined. */
  | { readonly refs: readonly string[]; readonly space?: string }
  | { readonly space: string }
  | { readonly space?: string; readonly words: string };
