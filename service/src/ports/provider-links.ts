import type { ProviderKind } from '../core/providers.ts';
import type { UpstreamSettings } from '../../../src/core/settings/settings.ts';
import type { Upstream, UpstreamRequest } from '../../../src/ports/upstream.ts';

/**
 * Connections from a service to the providers of its tenants. Presets with one origin share connections; each version
 * of a custom provider has its own.
 */
export interface ProviderLinks {
  /** Returns the connection to a provider. A custom provider's sockets are used again until its version changes. */
  to(provider: LinkedProvider, settings: UpstreamSettings): Upstream;
  /**
   * Sends one request and reads the whole answer, for the few answers that svc reads itself. Throws as
   * `Upstream.send` does, and the reason of `signal`.
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
  /** The body; undefined if the answer was cut, late or too long. */
  readonly body: Buffer | undefined;
}
