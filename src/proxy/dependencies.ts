import type { Dialect } from '../core/conversation/dialect.ts';
import type { ProxySettings, UpstreamSettings } from '../core/settings/settings.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { Memory } from '../ports/memory.ts';
import type { Projects } from '../ports/projects.ts';
import type { Code } from '../ports/code.ts';
import type { ProvenanceStore } from '../ports/provenance.ts';
import type { Outbox } from '../ports/outbox.ts';
import type { RequestLog, RequestRow } from '../ports/request-log.ts';
import type { Upstream } from '../ports/upstream.ts';
import type { InFlight } from './in-flight.ts';
import type { KeptRequests } from './kept-requests.ts';

/** An upstream as the proxy uses it: how to reach it, and what its requests must carry. */
export interface ConfiguredUpstream {
  readonly settings: UpstreamSettings;
  readonly upstream: Upstream;
}

/** Settings that can change while the proxy runs: each request reads them once, at its start. */
export interface LiveSettings {
  readonly proxy: ProxySettings;
  readonly upstreams: ReadonlyMap<Dialect, ConfiguredUpstream>;
}

/** Everything that one request needs, joined once by the edge that starts the proxy. */
export interface ProxyDependencies {
  readonly version: string;
  readonly live: () => LiveSettings;
  readonly memory: Memory;
  readonly ledger: Ledger;
  readonly outbox: Outbox;
  readonly requestLog: RequestLog;
  readonly clock: Clock;
  readonly projects: Projects;
  /** The files beside what is remembered; undefined with a memory service, which knows none. */
  readonly code?: { readonly reader: Code; readonly provenance: ProvenanceStore } | undefined;
  /** The secret with which recalled blocks are marked. */
  readonly blockKey: string;
  /** Where what is left out is also a file; undefined where it is none. */
  readonly outputFolder: string | undefined;
  /** The requests being answered, for the terminal's live view. */
  readonly inFlight?: InFlight;
  /** The last requests whole, where the settings ask for it. */
  readonly kept?: KeptRequests;
  /** Called with each finished request, to show it in the terminal. */
  readonly onRow: (row: RequestRow) => void;
}
