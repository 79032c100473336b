import type { RequestView } from '../core/conversation/view.ts';
import type { Issuer } from '../core/plan/evidence.ts';
import type { Unread } from '../core/plan/plan.ts';
import type { ModelFacts } from '../core/settings/model-facts.ts';
import type { ProxySettings, UpstreamSettings } from '../core/settings/settings.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { Memory } from '../ports/memory.ts';
import type { Projects } from '../ports/projects.ts';
import type { Code } from '../ports/code.ts';
import type { ProvenanceStore } from '../ports/provenance.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { Texts } from '../ports/texts.ts';
import type { Upstream } from '../ports/upstream.ts';
import type { BackgroundPace } from './background-queue.ts';
import type { ClientRequest } from './client-request.ts';
import type { InFlight, KeptRequests } from './in-flight.ts';
import type { AnswerWatcher } from './relay.ts';
import type { KnownFacts, RequestFacts } from './request-facts.ts';

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
  readonly settings: () => ProxySettings;
  readonly choose: ChooseUpstream;
  /**
   * The space in which a request may use memory, given the one that it names or that was derived for
   * it. Undefined: it has no memory. Throws ProxyError for a named space that it may not use. Absent:
   * every space is allowed.
   */
  readonly placeIn?: (space: string, isNamed: boolean) => string | undefined;
  /** Whether the caller may read memories of this space. Absent: of every space. */
  readonly mayRead?: (space: string) => boolean;
  readonly memory: Memory;
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
  /** The limits and list prices of a model, as far as they are known now. */
  readonly factsOf: (model: string) => ModelFacts | undefined;
  readonly clock: Clock;
  /** Undefined where the folders of the callers are elsewhere: a project is the folder that a client states. */
  readonly projects?: Projects;
  /** The files beside what is remembered; undefined with a memory service, which knows none. */
  readonly code?: { readonly reader: Code; readonly provenance: ProvenanceStore } | undefined;
  /** The secret with which recalled blocks are marked. */
  readonly blockKey: string;
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
  /** Hashes what was sent, unless that is done. A megabyte takes a millisecond. */
  count(): void;
  /** Hashes an answer beside a watcher, also where the watcher fails. */
  watching(inner: AnswerWatcher | undefined): AnswerWatcher;
  /** The hashes so far; to be called when the relay is over. */
  known(): KnownHashes;
}

/** In hex. The texts are nowhere. */
export interface KnownHashes {
  readonly request: string | undefined;
  readonly forwarded: string | undefined;
  readonly response: string | undefined;
}
