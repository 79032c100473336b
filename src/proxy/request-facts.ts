import type { Answer } from '../core/dialects/answer.ts';
import type { Modes } from '../core/http/modes.ts';
import type { MemoryState } from '../core/plan/continuity.ts';
import type { ConversationPlace } from '../core/recall/injections.ts';
import type { Plan } from '../core/plan/plan.ts';
import type { RawHeaders } from '../core/http/headers.ts';
import type { UpstreamSettings } from '../core/settings/settings.ts';
import type { RequestRow } from '../ports/request-log.ts';
import type { ClientRequest } from './client-request.ts';
import type { KnownHashes } from './dependencies.ts';

/** How many records wait in the outbox now; 'failed': it could not take them. */
export type Captured = number | 'failed';

/**
 * Everything that is known of one request, collected once: a row of the request log and a receipt
 * are two views of it.
 */
export interface RequestFacts extends KnownFacts {
  readonly row: RequestRow;
}

/** The same without the row, which only an ended request needs. */
export interface KnownFacts {
  readonly request: ClientRequest;
  /** Undefined for a request that svc does not read. */
  readonly place: ConversationPlace | undefined;
  /** Undefined while they are not decided. */
  readonly modes: Modes | undefined;
  readonly plan: Plan;
  readonly memoryState: MemoryState;
  /** The generation of the space that the memory answered from; undefined where it was not asked. */
  readonly memoryGeneration: string | undefined;
  /** Records that were put into the outbox; 'failed' where it could not take them. */
  readonly captured: Captured;
  /** Milliseconds that putting them there took; undefined where nothing was to be kept. */
  readonly captureMs: number | undefined;
  /** Recalled blocks that the request carried. */
  readonly recalledBlocks: number;
  /** The client asked for an answer in events. */
  readonly isStreamed: boolean;
  /** Undefined where none was chosen. */
  readonly upstream: UpstreamSettings | undefined;
  /** The head of the provider's answer. */
  readonly head: { readonly status: number; readonly headers: RawHeaders } | undefined;
  readonly answer: Answer | undefined;
  /** Output tokens by estimate; undefined where the provider has counted them, or no answer came. */
  readonly uncountedTokens: number | undefined;
  /** The error that ended the request. */
  readonly error: unknown;
  /** Undefined where they are not asked for. */
  readonly hashes: KnownHashes | undefined;
}
