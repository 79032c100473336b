import type { Completes } from '../core/answer/answer-reader.ts';
import type { Answer } from '../core/dialects/answer.ts';
import type { Modes } from '../core/http/modes.ts';
import type { MemoryState } from '../core/plan/continuity.ts';
import type { Comparison } from '../core/meter/cache-miss.ts';
import type { ConversationPlace, Placement } from '../core/recall/injections.ts';
import type { RequestRow } from '../ports/request-log.ts';
import type { RequestView } from '../core/conversation/view.ts';
import type { Issuer } from '../core/plan/evidence.ts';
import type { Plan, Unread } from '../core/plan/plan.ts';
import type { ModelFacts } from '../core/settings/model-facts.ts';
import type { HandlerSettings, UpstreamSettings } from '../core/settings/settings.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { RequestMemory } from '../ports/memory.ts';
import type { Projects } from '../ports/projects.ts';
import type { Code, ProvenanceStore } from '../ports/provenance.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Texts } from '../ports/texts.ts';
import type { Upstream } from '../ports/upstream.ts';
import type { BackgroundPace } from './background-queue.ts';
import type { Reading } from './conversations.ts';
import type { InFlight, KeptRequests } from './in-flight.ts';
import type { ServerResponse } from 'node:http';
import type { RawHeaders } from '../core/http/header-rules.ts';
import type { Encoding } from '../core/http/http-form.ts';
import type { Route } from '../core/http/routes.ts';

/** An upstream as the proxy uses it: how to reach it, and what its requests must carry. */
export interface ConfiguredUpstream {
  readonly settings: UpstreamSettings;
  readonly upstream: Upstream;
}

/** The facts by which the upstream of a request is chosen. */
export interface UpstreamQuestion {
  readonly request: ClientRequest;
  /** The body as svc reads it, or why it does not. A relayed request is not read. */
  readonly read: RequestView | Unread | 'relayed';
}

export interface ChosenUpstream {
  readonly configured: ConfiguredUpstream;
  /** The body with the model that it lacked; undefined where it stays as it is. */
  readonly body?: Buffer;
}

/** Throws ProxyError when the request has no upstream. Nothing was sent anywhere by then. */
export type ChooseUpstream = (asked: UpstreamQuestion) => ChosenUpstream | Promise<ChosenUpstream>;

/** Everything that one request needs, joined once by the edge that starts the proxy. */
export interface ProxyDependencies {
  readonly issuer: Issuer;
  /** The owner of everything that is remembered here. */
  readonly tenant: string;
  /** They can change while the proxy runs: each request reads them once, at its start. */
  readonly settings: () => HandlerSettings;
  readonly choose: ChooseUpstream;
  /**
   * The space in which a request may use memory, given the one that it names or that was derived for
   * it. Undefined: it has no memory. Throws for a named space that it may not use. Absent:
   * every space is allowed.
   */
  readonly placeIn?: (space: string, isNamed: boolean) => string | undefined;
  /** Whether the caller may read memories of this space. Absent: of every space. */
  readonly mayRead?: (space: string) => boolean;
  readonly memory: RequestMemory;
  /**
   * Holds back the end of an answer, at most so long, until what was noted of it is stored. Undefined: what
   * was written at once is safe enough.
   */
  readonly holdBack?: {
    readonly ms: number;
    /** Asked when the answer is whole; absent: of each answer. */
    isNeeded?(): boolean;
    stored(facts: RequestFacts, msLeft: number): Promise<void>;
  };
  readonly ledger: Ledger;
  readonly outbox: Outbox;
  readonly texts: Texts;
  readonly accounts: Accounts;
  /** The limits and list prices of a model, as far as they are known now. */
  readonly factsOf: (model: string) => ModelFacts | undefined;
  readonly clock: Clock;
  /** Undefined where the folders of the callers are elsewhere: a project is the folder that a client states. */
  readonly projects?: Projects;
  /** The files beside what is remembered; undefined with a memory service, which knows none. */
  readonly code?: { readonly reader: Code; readonly provenance: ProvenanceStore } | undefined;
  /** The secret with which recalled blocks are marked. */
  readonly blockKey: string;
  /** The secret of the marks of svc's hooks; undefined where no hook has run. Absent: no client here has hooks of svc. */
  readonly hookKey?: () => string | undefined;
  /** The folder with left-out texts as files; undefined if there is none. */
  readonly outputFolder: string | undefined;
  /** Where a service answers for the reference of what is left out. */
  readonly objectsUrl?: string | undefined;
  /** The requests being answered, for the terminal's live view. */
  readonly inFlight?: InFlight;
  /** The last requests whole, where the settings ask for it. */
  readonly kept?: KeptRequests;
  /** Called once for each request, before memory is asked. Throws to stop the request. */
  readonly admit?: (facts: KnownFacts) => Promise<void>;
  /** Called once for each request, after the plan and before it is sent. Throws to stop the request. */
  readonly planned?: (facts: KnownFacts) => void;
  /** Called once with each request, when its answer has ended. */
  readonly note: (facts: RequestFacts) => void;
  /** The pace of background work, where handlers share one. */
  readonly background?: BackgroundPace;
  /** Called when background work has changed what the handler holds in memory. */
  readonly changed?: () => void;
  /** Begins to hash the bodies of a request, for its receipt. */
  readonly hashes?: (body: Uint8Array | undefined) => BodyWatch;
}

/** Hashes the bodies of one request. */
export interface BodyWatch {
  /** The request's body as it is forwarded where svc changes nothing else. */
  routed(own: Uint8Array | undefined): void;
  /** The body that was sent, in pieces; undefined: the request's own. */
  forwarded(pieces: readonly Uint8Array[] | undefined): void;
  /** Hashes an answer beside a watcher, also where the watcher fails. */
  watching(inner: AnswerWatcher | undefined): AnswerWatcher;
  /** The hashes so far; to be called when the relay is over. */
  known(): KnownHashes;
}

/** A request that passed the gate: routed, its token checked, its body read and decoded. */
export interface ClientRequest {
  /** `req_` and 24 characters; the client sees it as x-svc-request-id. */
  readonly id: string;
  readonly route: Route;
  readonly method: string;
  /** Path and query exactly as received. */
  readonly target: string;
  readonly headers: RawHeaders;
  /** Decoded; undefined when the request had none. */
  readonly body: Buffer | undefined;
  /** The same body as the client encoded it; undefined where it did not. */
  readonly encoded?: EncodedBody | undefined;
  /** Clock.monotonic() when the request head was in. */
  readonly startedAt: number;
}

export interface EncodedBody {
  readonly bytes: Buffer;
  readonly encoding: Encoding;
}

/**
 * Answers one request. local/server.ts turns an error that it throws into the client's error shape.
 */
export type Handler = (request: ClientRequest, outgoing: ServerResponse) => Promise<void>;

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

/** In hex. The texts are nowhere. */
export interface KnownHashes {
  readonly request: string | undefined;
  readonly forwarded: string | undefined;
  readonly response: string | undefined;
}

/**
 * Sees the bytes pass. It shares their thread, so it must return at once. An error that it throws
 * is dropped, and the watcher with it: memory may miss an answer, the client may not.
 */
export interface AnswerWatcher {
  data(chunk: Uint8Array): void;
  /** Tells what may be whole with this chunk, which was not yet given to `data`. */
  completes(chunk: Uint8Array): Completes;
  /** After `data` of what may complete a signed thought, before the client can have it. */
  beforeThought(): void;
  /**
   * After `data` of what may be the last bytes that matter, before the client can have them. False:
   * the answer only quotes its own end and continues, so this is asked again. True: never again.
   */
  beforeLast(): boolean;
}

/** Completes the rows of the request log. No answer waits for it. */
export interface Accounts {
  /** Compares an ended request with the one before it. To be called once a request. */
  compare(reading: Reading, startedAt: number): Comparison | undefined;
  /** The row of an ended request with its prices and notes. Notes what those of the next one depend on. */
  complete(row: RequestRow, ended: EndedRequest): RequestRow;
}

export interface EndedRequest {
  /** Undefined for a request that svc does not read. */
  readonly reading: Reading | undefined;
  readonly plan: Plan;
  readonly placements: readonly Placement[];
  /** The visible text of the answer. */
  readonly text: string;
  /** By the monotonic clock: when it came, and when its answer began. */
  readonly startedAt: number;
  readonly answeredAt: number;
  readonly comparison: Comparison | undefined;
}
