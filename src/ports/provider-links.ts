import type { ProviderKind } from '../core/service/providers.ts';
import type { UpstreamSettings } from '../core/settings/settings.ts';
import type { Upstream } from './upstream.ts';

/**
 * The ways from a service to the providers of its tenants. Presets of one origin share their
 * connections; a custom provider shares them with nobody.
 */
export interface ProviderLinks {
  /** The same version of a provider keeps its connections. */
  to(provider: LinkedProvider, settings: UpstreamSettings): Upstream;
  /** Lets running answers finish, then closes all connections. */
  close(): Promise<void>;
}

export interface LinkedProvider {
  readonly providerId: string;
  readonly version: number;
  readonly kind: ProviderKind;
}
