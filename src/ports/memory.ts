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
 * Where memories live. One contract for the embedded store, the hosted service and the fake; the
 * suite in test/ports holds all of them to it. Every method may fail with MemoryError, and a
 * failure is never a failure of the model request.
 */
export interface Memory {
  readonly supports: MemorySupport;
  /** Best first. Looks in `space` and in the space 'global', nowhere else. */
  recall(question: RecallQuestion, signal: AbortSignal): Promise<RecallAnswer>;
  /**
   * Durable when it resolves: one state a record, in order. The same digest in the same space is stored
   * once. Tool outputs are kept apart from what is recalled: they are neither searched nor listed.
   */
  capture(records: readonly MemoryRecord[], signal: AbortSignal): Promise<readonly CaptureState[]>;
  /** Exact stored text by digest or reference; undefined when not held. */
  retrieve(key: RecordKey, signal: AbortSignal): Promise<StoredRecord | undefined>;
  list(filter: ListFilter, signal: AbortSignal): Promise<readonly SpokenRecord[]>;
  /** Whole references that begin so, of records and outputs; at most REFERENCES_MAX, in their order. */
  references(start: string, signal: AbortSignal): Promise<readonly string[]>;
  /**
   * Leaves tombstones: what was forgotten is not captured again. Resolves to the number forgotten. By
   * words the embedded store takes outputs along, others need not: their outputs are in no index.
   */
  forget(
    filter: ForgetFilter,
    signal: AbortSignal,
    /** Hears of each part. */
    progress?: (forgotten: number, all: number) => void,
  ): Promise<number>;
  /**
   * Proves, now, which outputs and records it holds: one answer for each digest held in this space,
   * in any order, none for the others. The proof is made from the stored text itself.
   */
  hold(question: HoldQuestion, signal: AbortSignal): Promise<readonly Holding[]>;
  /**
   * Stays the same as long as no text that it has proven can have gone, by whatever process; undefined
   * when that is not certain now. Looks at its files at the call. A service over a network has none, nor
   * one with a database over a network: they prove in every request.
   */
  holdVersion?(): number | undefined;
  /**
   * Moves some of what one space holds to another, with its outputs and what was forgotten in it; all is
   * moved once nothing is. The embedded store alone can: a service takes copies and forgets the others.
   */
  moveSome?(move: SpaceMove, signal: AbortSignal): Promise<SpaceMoved>;
  /**
   * All memories, page by page, with their marks. No memory is left out because others are forgotten or
   * said again meanwhile. The embedded store alone has such pages.
   */
  page?(filter: PageFilter, signal: AbortSignal): Promise<RecordPage>;
  /** One of its proofs was false: whatever it says is not worth asking for, for so long. */
  distrust?(milliseconds: number): void;
  close(): Promise<void>;
}

/** The part of a memory that a request asks. */
export type RequestMemory = Pick<
  Memory,
  'supports' | 'recall' | 'capture' | 'hold' | 'holdVersion' | 'distrust'
>;

/** More than a person would choose from. */
export const REFERENCES_MAX = 10;

export interface SpaceMove {
  readonly from: string;
  readonly to: string;
  /** Only these memories, which no conversation brings back to `from`; else the whole space. */
  readonly refs?: readonly string[];
}

/** How many left their space. */
export interface SpaceMoved {
  readonly memories: number;
  readonly outputs: number;
}

export interface HoldQuestion {
  readonly space: string;
  readonly digests: readonly string[];
  /** 32 fresh random bytes: an answer to an earlier question proves nothing. */
  readonly nonce: Uint8Array;
}

export interface Holding {
  readonly digest: string;
  /** `textProof(nonce, role, text)` of core/shortening/proofs.ts. */
  readonly proof: string;
}

/** May change while the proxy runs: a hosted memory reads and writes what its key allows. */
export interface MemorySupport {
  readonly kind: 'embedded' | 'hosted' | 'fake';
  readonly read: boolean;
  readonly write: boolean;
}

export interface RecallQuestion {
  readonly space: string;
  /** Spaces in which the same project was kept before. */
  readonly olderSpaces?: readonly string[];
  /** The person's prompt. Secrets are masked already. */
  readonly humanText: string;
  /** The last visible assistant text, with less weight: "ok, do it" says nothing alone. */
  readonly assistantText: string;
  /** Records whose digest is among these are not wanted: the request already holds them. */
  readonly excludeDigests: readonly string[];
  /** Estimated tokens that the block may take. */
  readonly tokensMax: number;
  /** Milliseconds since 1970, for "yesterday" in a question; not for ranking by age. */
  readonly now: number;
  /**
   * Set for an agent. It has tools and looks things up itself, so it gets few short lines of whole
   * exchanges, and only now and then. A chat without tools gets passages: it has nothing else. A
   * memory that knows no exchanges ignores this and answers with passages.
   */
  readonly agent?: AgentFacts;
}

export interface RecallAnswer {
  readonly passages: readonly RecalledPassage[];
  /** For an agent's question: lines of exchanges, best first; `passages` then are standing instructions. */
  readonly exchanges?: readonly LocatedExchange[];
  /** For an agent's question that asks for a brief: sessions that most likely matter, best first. */
  readonly sessions?: readonly RecalledSession[];
  /** The generation of the space that was asked; absent for a memory whose spaces have none. */
  readonly generation?: string;
}

export interface LocatedExchange extends RecalledExchange {
  /**
   * The folder and the files that it concerned; undefined where svc does not know them. It stays on
   * this machine, and is never part of a block.
   */
  readonly provenance?: RecalledProvenance;
}

export type RecalledProvenance = Pick<Provenance, 'root' | 'files'>;

/** 'forgotten': a tombstone keeps it out. */
export type CaptureState = 'stored' | 'duplicate' | 'forgotten' | 'rejected';

export type RecordKey =
  | { readonly ref: string }
  | { readonly digest: string; readonly space: string };

export interface ListFilter {
  /** All spaces when absent. */
  readonly space?: string;
  /** Words to find; newest first when absent, best first otherwise. */
  readonly words?: string;
  readonly role?: SpeakerRole;
  readonly conversation?: string;
  /** Only these; one reference may name a record in each of several spaces. */
  readonly refs?: readonly string[];
  readonly since?: number;
  readonly until?: number;
  /** At most 1,000. */
  readonly limit: number;
  readonly offset?: number;
}

export interface PageFilter {
  /** All spaces when absent. */
  readonly space?: string;
  /** The `next` of the page before. */
  readonly before?: number;
  /** At most 1,000. */
  readonly limit: number;
}

export interface RecordPage {
  readonly records: readonly (SpokenRecord & MemoryMarks)[];
  /** Undefined for an empty page. */
  readonly next: number | undefined;
}

export type ForgetFilter =
  /** In every space when `space` is absent. */
  | { readonly refs: readonly string[]; readonly space?: string }
  | { readonly space: string }
  | { readonly space?: string; readonly words: string };
