import type { CompressionMode, ProxySettings } from '../settings/settings.ts';

/** The settings under which a service serves the requests of a tenant. */

/** A tenant chooses these in the console under Settings, Proxy. */
export interface AccountDefaults {
  readonly compressionMode: CompressionMode;
  readonly inputBudget: number;
  readonly recalledTokensMax: number;
  readonly elisionEnabled: boolean;
  readonly elisionKeepRounds: number;
  readonly elisionCaptureLimit: number;
}

export const ACCOUNT_DEFAULTS: AccountDefaults = {
  compressionMode: 'deterministic',
  inputBudget: 8192,
  recalledTokensMax: 512,
  elisionEnabled: true,
  elisionKeepRounds: 4,
  elisionCaptureLimit: 8,
};

/** The same bounds as those of a proxy on a person's own machine. */
export const MODEL_BODY_BYTES = { decoded: 64 << 20, zstd: 16 << 20 } as const;

/** A reasoning model may think for minutes before its head. */
export const PROVIDER_HEADERS_MS = 600_000;

/** The embedded store's own deadline for a recall: it is the same work in the same process. */
export const RECALL_MS = 300;

export function servedSettings(account: AccountDefaults, recallMs: number): ProxySettings {
  return {
    ...account,
    // A service's listener has its own address; these two are never read.
    host: '127.0.0.1',
    port: 0,
    // The scopes of the key and the header lower it.
    memoryMode: 'read-write',
    sessionBrief: true,
    recallQuietPercent: 65,
    cacheTtl: 'client',
    bodyBytesMax: MODEL_BODY_BYTES.decoded,
    zstdBytesMax: MODEL_BODY_BYTES.zstd,
    recallMs,
    upstreamHeadersMs: PROVIDER_HEADERS_MS,
    drainMs: 0,
    keepRequests: 0,
    relayPaths: [],
  };
}
