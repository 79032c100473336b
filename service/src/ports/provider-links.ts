import type { ProviderKind } from '../core/providers.ts';
import type { UpstreamSettings } from '../../../src/core/settings/settings.ts';
import type { Upstream, UpstreamRequest } from '../../../src/ports/upstream.ts';

/**
 * Connections from a service to the providers of its tenants. Presets of one origin share
 * connections; a custom provider has its own.
 */
export interface ProviderLinks {
  /** The same version of a provider keeps its connections. */
  to(provider: LinkedProvider, settings: UpstreamSettings): Upstream;
  /**
   * One request whose answer is read whole, for a few that svc reads itself. Throws as `Upstream.send`
   * does, and the reason of `signal`.
   */
  ask(provider: LinkedProvider, question: WholeQuestion): Promise<WholeAnswer>;
  /** Lets running answers finish, then closes all connections. */
  close(): Promise<void>;
}

export interface LinkedProvider {
  readonly providerId: string;
  readonly version: number;
  readonly kind: ProviderKind;
}

export interface WholeQuestion {
  readonly settings: UpstreamSettings;
  readonly request: UpstreamRequest;
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

export interface WholeAnswer {
  readonly status: number;
  /** Undefined for one that is cut, late or too long. */
  readonly body: Buffer | undefined;
}
