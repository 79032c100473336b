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

/** An upstream: its connection, and the settings for its requests. */
export interface ConfiguredUpstream {
  readonly settings: UpstreamSettings;
  readonly upstream: Upstream;
}

export interface UpstreamQuestion {
  readonly request: ClientRequest;
  /** The body as svc reads it, or the reason why svc cannot. 'relayed': svc does not read this request. */
  readonly read: RequestView | Unread | 'relayed';
}

export interface ChosenUpstream {
  readonly configured: ConfiguredUpstream;
  /** The body with the missing model filled in; undefined if the body stays unchanged. */
  readonly body?: Buffer;
}

/** Chooses the upstream of a request before anything is sent. Throws ProxyError if there is none. */
export type ChooseUpstream = (asked: UpstreamQuestion) => ChosenUpstream | Promise<ChosenUpstream>;

/** Everything that the handler of a request needs. The entry point that starts the proxy builds it once. */
export interface ProxyDependencies {
  readonly issuer: Issuer;
  /** The owner of all memories and notes of this proxy. */
  readonly tenant: string;
  /** Returns the settings. They can change while the proxy runs, so each request reads them once, at its start. */
  readonly settings: () => HandlerSettings;
  readonly choose: ChooseUpstream;
  /**
   * Returns the space in which a request may use memory, given the one that it names or that was derived for it.
   * Returns undefined if it has no memory. Throws for a named space that it may not use. If this member is undefined,
   * every space is allowed.
   */
  readonly placeIn?: (space: string, isNamed: boolean) => string | undefined;
  /** Says whether the caller may read memories of this space. If this member is undefined, it may read all spaces. */
  readonly mayRead?: (space: string) => boolean;
  readonly memory: RequestMemory;
  /**
   * Delays the end of an answer, by `ms` at most, until its facts are stored. Undefined: what is written during the
   * request is safe enough.
   */
  readonly holdBack?: {
    readonly ms: number;
    /** Called once the answer is whole. If this member is undefined, every answer is delayed. */
    isNeeded?(): boolean;
    stored(facts: RequestFacts, msLeft: number): Promise<void>;
  };
  readonly ledger: Ledger;
  readonly outbox: Outbox;
  readonly texts: Texts;
  readonly accounts: Accounts;
  /** Returns the limits and list prices of a model, if they are known. */
  readonly factsOf: (model: string) => ModelFacts | undefined;
  readonly clock: Clock;
  /** Finds the project of a folder. Undefined if folders are on other machines: their names are the projects. */
  readonly projects?: Projects;
  /** Reads the code files that memories are about. Undefined with a memory service, which has no access to them. */
  readonly code?: { readonly reader: Code; readonly provenance: ProvenanceStore } | undefined;
  /** The secret with which recalled blocks are marked. */
  readonly blockKey: string;
  /**
   * Returns the secret for the marks of svc's hooks; undefined while no hook has run. If this member is undefined, no
   * client here uses svc's hooks.
   */
  readonly hookKey?: () => string | undefined;
  /** The folder that holds left-out texts as files; undefined if there is none. */
  readonly outputFolder: string | undefined;
  /** The address at which a service returns a left-out text by its reference. */
  readonly objectsUrl?: string | undefined;
  /** The requests that are being answered, for the terminal's live view. */
  readonly inFlight?: InFlight;
  /** Keeps the last requests whole, if the settings ask for it. */
  readonly kept?: KeptRequests;
  /** Called once for each request, before memory is asked. Throws to stop the request. */
  readonly admit?: (facts: KnownFacts) => Promise<void>;
  /** Called once for each request, after the plan and before it is sent. Throws to stop the request. */
  readonly planned?: (facts: KnownFacts) => void;
  /** Called once with each request, when its answer has ended. */
  readonly note: (facts: RequestFacts) => void;
  /** The pace of background work, if several handlers share one. */
  readonly background?: BackgroundPace;
  /** Called when background work has changed how much memory the handler uses. */
  readonly changed?: () => void;
  /** Begins to hash the bodies of a request, for its receipt. */
  readonly hashes?: (body: Uint8Array | undefined) => BodyWatch;
}

export interface BodyWatch {
  /** Hashes the request's body after routing, for a request that svc does not change further. */
  routed(own: Uint8Array | undefined): void;
  /** Hashes the body that was sent, in pieces; undefined: the routed body was sent. */
  forwarded(pieces: readonly Uint8Array[] | undefined): void;
  /** Wraps a watcher so that the answer is hashed too, even if the watcher fails. */
  watching(inner: AnswerWatcher | undefined): AnswerWatcher;
  /** Returns the hashes. Call it after the relay has ended. */
  known(): KnownHashes;
}

/** A request that the gate accepted: its route is known, its token is checked, its body is decoded. */
export interface ClientRequest {
  /** `req_` and 24 characters; the client sees it as x-svc-request-id. */
  readonly id: string;
  readonly route: Route;
  readonly method: string;
  /** Path and query exactly as received. */
  readonly target: string;
  readonly headers: RawHeaders;
  /** The decoded body; undefined if the request had none. */
  readonly body: Buffer | undefined;
  /** The body in the client's own content encoding; undefined if the client did not compress it. */
  readonly encoded?: EncodedBody | undefined;
  /** When the head of the request had arrived, by Clock.monotonic(). */
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

/** The number of records that the outbox took; 'failed' if it could not take them. */
export type Captured = number | 'failed';

/** Everything known about one request, collected once. The request log's row and the receipt are both made from it. */
export interface RequestFacts extends KnownFacts {
  readonly row: RequestRow;
}

/** The same facts without the row, which exists only after the request has ended. */
export interface KnownFacts {
  readonly request: ClientRequest;
  /** The place of the conversation; undefined for a request that svc does not read. */
  readonly place: ConversationPlace | undefined;
  /** The modes; undefined until they are decided. */
  readonly modes: Modes | undefined;
  readonly plan: Plan;
  readonly memoryState: MemoryState;
  /** The generation of the memory's space when it answered; undefined if it was not asked. */
  readonly memoryGeneration: string | undefined;
  /** Records that the outbox took; 'failed' if it could not take them. */
  readonly captured: Captured;
  /** Milliseconds for storing the records; undefined if there was nothing to store. */
  readonly captureMs: number | undefined;
  /** The number of recalled blocks in the request. */
  readonly recalledBlocks: number;
  /** True if the client asked for a stream of events. */
  readonly isStreamed: boolean;
  /** The upstream; undefined if none was chosen. */
  readonly upstream: UpstreamSettings | undefined;
  /** The head of the provider's answer. */
  readonly head: { readonly status: number; readonly headers: RawHeaders } | undefined;
  readonly answer: Answer | undefined;
  /** Estimated output tokens; undefined if the provider counted them or no answer came. */
  readonly uncountedTokens: number | undefined;
  /** The error that ended the request. */
  readonly error: unknown;
  /** Hashes of the bodies; undefined if no receipt needs them. */
  readonly hashes: KnownHashes | undefined;
}

/** Hashes in hex. The texts are stored nowhere. */
export interface KnownHashes {
  readonly request: string | undefined;
  readonly forwarded: string | undefined;
  readonly response: string | undefined;
}

/**
 * Sees the bytes of an answer pass. It runs on the relay's thread, so it must return at once. If it throws, the
 * watcher is dropped and the relay continues: memory may miss an answer, the client may not.
 */
export interface AnswerWatcher {
  data(chunk: Uint8Array): void;
  /** Says what this chunk may complete. Called before the chunk is given to `data`. */
  completes(chunk: Uint8Array): Completes;
  /** Called after `data` when the chunk may complete a signed thought, before the client can have it. */
  beforeThought(): void;
  /**
   * Called after `data` when the chunk may hold the last bytes that matter, before the client can have them. Returns
   * false if the answer continues after all: then it is called again. After true it is never called again.
   */
  beforeLast(): boolean;
}

/** Completes the rows of the request log. No answer waits for it. */
export interface Accounts {
  /** Compares an ended request with the one before it. Call it once per request. */
  compare(reading: Reading, startedAt: number): Comparison | undefined;
  /** Completes the row of an ended request with prices and notes. Remembers what the next row depends on. */
  complete(row: RequestRow, ended: EndedRequest): RequestRow;
}

export interface EndedRequest {
  /** What svc read of the request; undefined if svc does not read it. */
  readonly reading: Reading | undefined;
  readonly plan: Plan;
  readonly placements: readonly Placement[];
  /** The visible text of the answer. */
  readonly text: string;
  /** Times by the monotonic clock: when the request came, and when its answer began. */
  readonly startedAt: number;
  readonly answeredAt: number;
  readonly comparison: Comparison | undefined;
}
