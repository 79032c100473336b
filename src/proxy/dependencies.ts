import type { Answer } from '../core/dialects/dialect-answer.ts';
import type { Modes } from '../core/http/modes.ts';
import type { MemoryState } from '../core/plan/continuity.ts';
import type { Comparison } from '../core/meter/cache-miss.ts';
import type { ConversationPlace, Placement } from '../core/recall/injections.ts';
import type { RequestRow } from '../ports/request-log.ts';
import type { RequestView } from '../core/conversation/view.ts';
import type { Issuer, Plan, Unread } from '../core/plan/plan.ts';
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
  /** The parsed body, or the reason why svc cannot parse it. 'relayed': svc does not read this kind of request. */
  readonly read: RequestView | Unread | 'relayed';
}

export interface ChosenUpstream {
  readonly configured: ConfiguredUpstream;
  /** The body with a model in it, if the client's has none; otherwise undefined. */
  readonly body?: Buffer;
}

/** Chooses the upstream of a request before anything is sent. Throws ProxyError if there is none. */
export type ChooseUpstream = (asked: UpstreamQuestion) => ChosenUpstream | Promise<ChosenUpstream>;

/**
 * Everything that the handler of requests needs. The proxy builds it once (compose*.ts), a service once for each key.
 */
export interface ProxyDependencies {
  readonly issuer: Issuer;
  /** The tenant of all memories and ledger entries of this handler. */
  readonly tenant: string;
  /** Returns the settings. They may change while the proxy runs, so a model request reads them once, at its start. */
  readonly settings: () => HandlerSettings;
  readonly choose: ChooseUpstream;
  /**
   * Returns the space in which a request may use memory. `space`: the one that the request states (`isNamed`), or that
   * svc derived. Returns undefined if the request may use no memory. Throws for a stated space that it may not use. If
   * this member is undefined, every space is allowed.
   */
  readonly placeIn?: (space: string, isNamed: boolean) => string | undefined;
  /** Says whether the caller may read memories of a space. If this member is undefined, it may read all spaces. */
  readonly mayRead?: (space: string) => boolean;
  readonly memory: RequestMemory;
  /** Delays the end of answers; undefined: no answer is delayed. */
  readonly holdBack?: HoldBack;
  readonly ledger: Ledger;
  readonly outbox: Outbox;
  readonly texts: Texts;
  readonly accounts: Accounts;
  /** Returns the limits and list prices of a model, if they are known. */
  readonly factsOf: (model: string) => ModelFacts | undefined;
  readonly clock: Clock;
  /** Finds the project of a folder. Undefined if folders are on other machines: then each folder is a project. */
  readonly projects?: Projects;
  /** Reads the code files that memories are about, and stores their state. Undefined with a memory service. */
  readonly code?: { readonly reader: Code; readonly provenance: ProvenanceStore } | undefined;
  /** The secret with which recalled blocks are marked. */
  readonly blockKey: string;
  /**
   * Returns the secret with which svc's hooks mark their texts; undefined if no hook has run yet. In a service this
   * member is undefined.
   */
  readonly hookKey?: () => string | undefined;
  /** The folder with the left-out texts as files; undefined if there is none. */
  readonly outputFolder: string | undefined;
  /** The URL, without the reference, at which a service returns a left-out text. */
  readonly objectsUrl?: string | undefined;
  /** The requests that are being answered: for the live views, and so that work for later waits for an idle proxy. */
  readonly inFlight?: InFlight;
  /** Keeps the last requests with their bodies, if the settings ask for it. */
  readonly kept?: KeptRequests;
  /**
   * Called once for each request that has an upstream, before the ledger or the memory is asked about it. Throws to
   * stop the request.
   */
  readonly admit?: (facts: KnownFacts) => Promise<void>;
  /** Called once for each request that is about to be sent, after its plan. Throws to stop the request. */
  readonly planned?: (facts: KnownFacts) => void;
  /** Called once with each request that the handler gets, when its answer has ended or it has failed. */
  readonly note: (facts: RequestFacts) => void;
  /** The pace of background work, if several handlers have a common one. */
  readonly background?: BackgroundPace;
  /** Called when background work has changed how much memory the handler uses. */
  readonly changed?: () => void;
  /** Begins to hash the bodies of a request and its answer, for a receipt. */
  readonly hashes?: (body: Uint8Array | undefined) => BodyWatch;
}

/** Delays the end of an answer until svc's records of it, such as ledger entries, are stored for every process. */
export interface HoldBack {
  /** Longest delay after the answer's last event, in milliseconds. After that the end is sent anyway. */
  readonly ms: number;
  /** Says, when the answer is whole, whether its end must be delayed. If this member is undefined, it always must. */
  isNeeded?(): boolean;
  /**
   * Resolves when these records are stored. Called when the provider has sent every byte. `msLeft`: the rest of the
   * delay.
   */
  stored(msLeft: number): Promise<unknown>;
}

export interface BodyWatch {
  /** Notes the request's body after the upstream was chosen; see ChosenUpstream. */
  routed(own: Uint8Array | undefined): void;
  /** Hashes the pieces of the body that was sent; undefined: the body of `routed` was sent. */
  forwarded(pieces: readonly Uint8Array[] | undefined): void;
  /** Begins to hash the answer. Returns a function that adds a chunk to the hash and never throws. */
  answering(): (chunk: Uint8Array) => void;
  /**
   * Returns the hashes so far. The first call after `answering` ends the hash of the answer, so make that call after
   * the relay has ended.
   */
  known(): KnownHashes;
}

/** A request that the gate has accepted, with its decoded body. */
export interface ClientRequest {
  /** `req_` and 24 characters; the client sees it as x-svc-request-id. */
  readonly id: string;
  readonly route: Route;
  readonly method: string;
  /**
   * Path and query as received, without the parts that splitTarget() removes: the client's name and the local token.
   */
  readonly target: string;
  readonly headers: RawHeaders;
  /** The decoded body; undefined if the request had none. */
  readonly body: Buffer | undefined;
  /**
   * The body in the client's own content encoding; undefined if the client did not compress it, or if svc did not keep
   * it.
   */
  readonly encoded?: EncodedBody | undefined;
  /** When the head of the request had arrived, by Clock.monotonic(). */
  readonly startedAt: number;
}

export interface EncodedBody {
  readonly bytes: Buffer;
  readonly encoding: Encoding;
}

/** Answers one request. If it throws, its caller writes the error in the client's form. */
export type Handler = (request: ClientRequest, outgoing: ServerResponse) => Promise<void>;

/** The number of records that the outbox took; 'failed' if it could not take them. */
export type Captured = number | 'failed';

/** Everything that is known about a request, with its row of the request log. */
export interface RequestFacts extends KnownFacts {
  readonly row: RequestRow;
}

/** Everything that is known about a request. It grows until the request has ended. */
export interface KnownFacts {
  readonly request: ClientRequest;
  /** The place of the conversation; undefined for a request that svc does not read. */
  readonly place: ConversationPlace | undefined;
  /** The modes; undefined until they are decided. */
  readonly modes: Modes | undefined;
  readonly plan: Plan;
  readonly memoryState: MemoryState;
  /** The generation of the memory's space when it answered; undefined if it was not asked, or has none. */
  readonly memoryGeneration: string | undefined;
  /**
   * The number of records that the outbox took when the answer ended; 'failed' if it could not take them. It does not
   * count the question of a stopped answer, or the history.
   */
  readonly captured: Captured;
  /**
   * Milliseconds that putting the answer's records into the outbox took; undefined without an answer, or if the request
   * may not write.
   */
  readonly captureMs: number | undefined;
  /** The number of recalled blocks in the request. */
  readonly recalledBlocks: number;
  /** True if the client asked for a stream of events. */
  readonly isStreamed: boolean;
  /** The upstream; undefined if none was chosen. */
  readonly upstream: UpstreamSettings | undefined;
  /** The head of the provider's answer; undefined until it arrives. */
  readonly head: { readonly status: number; readonly headers: RawHeaders } | undefined;
  readonly answer: Answer | undefined;
  /** Estimated output tokens; undefined if the provider counted them, or if no answer came. */
  readonly uncountedTokens: number | undefined;
  /** The error that ended the request. */
  readonly error: unknown;
  /** Hashes of the bodies; undefined if no receipt needs them. */
  readonly hashes: KnownHashes | undefined;
}

/** Hashes of bodies in hexadecimal digits. */
export interface KnownHashes {
  readonly request: string | undefined;
  readonly forwarded: string | undefined;
  readonly response: string | undefined;
}

/**
 * Reads the bytes of an answer before the relay forwards them. The relay waits for it, so it must return at once. If it
 * throws, the relay continues without it: the memory may miss an answer, but the client must not.
 */
export interface AnswerWatcher {
  /** Reads a chunk. Returns true if the chunk may complete the answer. */
  data(chunk: Uint8Array): boolean;
  /**
   * Called before a chunk is forwarded for which `data` has returned true or which completes the announced length. It
   * is also called at the end of the bytes. Returns false if the answer continues after all. The relay does not call it
   * again after true.
   */
  beforeLast(): boolean;
}

/** Completes the rows of the request log; see accounts.ts. */
export interface Accounts {
  /**
   * Compares an ended request with an earlier one; undefined for a request that is neither of the user's conversation
   * nor of a sub-agent. Call it once per request, in order.
   */
  compare(reading: Reading, startedAt: number): Comparison | undefined;
  /** Completes the row of an ended request, and keeps what the next row depends on. */
  complete(row: RequestRow, ended: EndedRequest): RequestRow;
}

export interface EndedRequest {
  /** What svc read of the request; undefined if svc does not read it. */
  readonly reading: Reading | undefined;
  readonly plan: Plan;
  readonly placements: readonly Placement[];
  /** The visible text of the answer. */
  readonly text: string;
  /** By the monotonic clock: when the request came, and when its answer began. */
  readonly startedAt: number;
  readonly answeredAt: number;
  readonly comparison: Comparison | undefined;
}
