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

export type { MemoryRecord, RecalledPassage, SpeakerRole, SpokenRecord, StoredRecord };
export type { AgentFacts, RecalledExchange, RecalledSession };

/**
 * Stores memories. The embedded store, the client of a memory service and the tests' fake implement this contract, and
 * the suite in test/ports checks all three. Every method that returns a promise may reject with MemoryError, which must
 * never fail a model request.
 */
export interface Memory {
  readonly supports: MemorySupport;
  /** Returns the best memories first. Searches only the spaces of the question and the space 'global'. */
  recall(question: RecallQuestion, signal: AbortSignal): Promise<RecallAnswer>;
  /**
   * Stores records. Returns one state for each, in order; when it resolves, the stored records are durable. The same
   * digest in the same space is stored once. Tool outputs are stored separately: they are neither searched nor listed,
   * and an output that contains a secret is rejected.
   */
  capture(records: readonly MemoryRecord[], signal: AbortSignal): Promise<readonly CaptureState[]>;
  /** Returns the exact stored text by digest or reference; undefined if none is stored, or a short one fits several. */
  retrieve(key: RecordKey, signal: AbortSignal): Promise<StoredRecord | undefined>;
  list(filter: ListFilter, signal: AbortSignal): Promise<readonly SpokenRecord[]>;
  /** Returns the references of records and outputs that begin with `start`, at most REFERENCES_MAX, sorted. */
  references(start: string, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Forgets memories and outputs, and leaves tombstones, so that the same texts are not captured again. Resolves to the
   * number of forgotten texts. With a filter by words a memory may leave out the outputs; the embedded store does not.
   */
  forget(
    filter: ForgetFilter,
    signal: AbortSignal,
    /** Called after each part of the work. */
    progress?: (forgotten: number, all: number) => void,
  ): Promise<number>;
  /**
   * Proves which outputs and records the memory holds now. Returns one answer for each digest that is stored in this
   * space (in a service, also acknowledged), in any order, and none for other digests. Each proof is computed from the
   * stored text itself.
   */
  hold(question: HoldQuestion, signal: AbortSignal): Promise<readonly Holding[]>;
  /**
   * Returns a number that stays the same as long as no process can have deleted a proven text; undefined if that is not
   * certain now. Each call examines the files. A memory over a network lacks this method, so svc asks it for new proofs
   * in every request.
   */
  holdVersion?(): number | undefined;
  /**
   * Moves part of a space to another one, with outputs and tombstones. Call it until it moves nothing, with a pause of
   * REST_MS in between. Only the embedded store has this method.
   */
  moveSome?(move: SpaceMove, signal: AbortSignal): Promise<SpaceMoved>;
  /**
   * Returns all memories, page by page, with the user's choices for each (MemoryMarks). If memories are forgotten or
   * captured again meanwhile, no other memory is skipped. Only the embedded store has this method.
   */
  page?(filter: PageFilter, signal: AbortSignal): Promise<RecordPage>;
  /** Reports a false proof. The memory is then not asked for this many milliseconds. */
  distrust?(milliseconds: number): void;
  close(): Promise<void>;
}

/** The methods of a memory that a model request uses. */
export type RequestMemory = Pick<
  Memory,
  'supports' | 'recall' | 'capture' | 'hold' | 'holdVersion' | 'distrust'
>;

/** Pause between two transactions, so that another process, which tries every few milliseconds, gets the lock. */
export const REST_MS = 5;

/** Bound on references that begin alike, from which a user chooses one; a user reads no longer list. */
export const REFERENCES_MAX = 10;

export interface SpaceMove {
  readonly from: string;
  readonly to: string;
  /**
   * The memories to move, each of which leaves a tombstone, so that a later capture does not store its text in `from`.
   * Undefined: the whole space.
   */
  readonly refs?: readonly string[];
}

/** The numbers of memories and of tool outputs that were moved. */
export interface SpaceMoved {
  readonly memories: number;
  readonly outputs: number;
}

export interface HoldQuestion {
  readonly space: string;
  readonly digests: readonly string[];
  /** The key of the proofs: 32 new random bytes, so that proofs from an earlier answer are invalid. */
  readonly nonce: Uint8Array;
}

export interface Holding {
  readonly digest: string;
  /** `textProof(nonce, role, text)` of core/memory-api/canonical.ts. */
  readonly proof: string;
}

/** What the memory allows. This may change while the proxy runs, because a service's key may gain or lose rights. */
export interface MemorySupport {
  readonly kind: 'embedded' | 'hosted' | 'fake';
  readonly read: boolean;
  readonly write: boolean;
}

export interface RecallQuestion {
  readonly space: string;
  /** Spaces that held the memories of this project earlier. */
  readonly olderSpaces?: readonly string[];
  /** The user's prompt with secrets masked; for a second look with a memory service, the words of the action. */
  readonly humanText: string;
  /**
   * The last visible text of the assistant; for an agent the end of that text, and the prompts before this one. It
   * counts less than `humanText`, and helps with prompts such as "ok, do it".
   */
  readonly assistantText: string;
  /** Digests of texts that the request already holds, which must not be returned. */
  readonly excludeDigests: readonly string[];
  /** Estimated tokens that the block may take. */
  readonly tokensMax: number;
  /** Milliseconds since 1970, to resolve a word such as "yesterday". It does not make newer memories rank higher. */
  readonly now: number;
  /**
   * Set for an agent, undefined for a chat. An agent can look things up with its tools, so it gets a few lines of the
   * best exchanges, and for many prompts none. A chat gets passages. A memory without exchanges ignores this member.
   */
  readonly agent?: AgentFacts;
}

export interface RecallAnswer {
  readonly passages: readonly RecalledPassage[];
  /**
   * For an agent's question: lines of exchanges, best first. Then `passages` has only the user's rules and pinned
   * texts. Undefined for a chat, and from a memory without exchanges, whose `passages` may be of any kind.
   */
  readonly exchanges?: readonly LocatedExchange[];
  /**
   * For an agent's question with `briefTokensMax` above 0: the earlier sessions that most likely matter, best first.
   */
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
  /** Lists only these references. A reference may name a record in each of several spaces. */
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
  /** The `before` of the next page; undefined for an empty page. */
  readonly next: number | undefined;
}

export type ForgetFilter =
  /** Forgets these references, in every space if `space` is undefined. */
  | { readonly refs: readonly string[]; readonly space?: string }
  | { readonly space: string }
  | { readonly space?: string; readonly words: string };
