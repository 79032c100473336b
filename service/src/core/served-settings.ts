import type { ProxySettings } from '../../../src/core/settings/settings.ts';
import type { AccountSettings } from './account-settings.ts';

/** The settings under which a service serves the requests of a tenant. */

/** The same bounds as those of a proxy on a person's own machine. */
export const MODEL_BODY_BYTES = { decoded: 64 << 20, zstd: 16 << 20 } as const;

/** A reasoning model may think for minutes before its head. */
export const PROVIDER_HEADERS_MS = 600_000;

/** The deadline of a recall from the embedded store: it is the same work, without a network. */
export const RECALL_MS = 300;

/**
 * The settings for one tenant. `canReadAgain`: stubs can name an address at which clients read what was
 * left out. Without it no tool output is left out, because no client could read it.
 */
export function servedSettings(
  account: AccountSettings,
  { recallMs, canReadAgain }: { readonly recallMs: number; readonly canReadAgain: boolean },
): ProxySettings {
  return {
    compressionMode: account.compressionMode,
    inputBudget: account.inputBudget,
    recalledTokensMax: account.recalledTokensMax,
    elisionEnabled: account.elisionEnabled && canReadAgain,
    elisionKeepRounds: account.elisionKeepRounds,
    elisionCaptureLimit: account.elisionCaptureLimit,
    // A service's listener has its own address; these two are never read.
    host: '127.0.0.1',
    port: 0,
    // The scopes of the key and the header lower it.
    memoryMode: 'read-write',
    sessionBrief: true,
    recallQuietPercent: 65,
    // A person's choice for their own machine, as `boundShortening` is.
    secondLook: 'off',
    cacheTtl: 'client',
    // A person's choice for their own machine and key.
    boundShortening: 'off',
    bodyBytesMax: MODEL_BODY_BYTES.decoded,
    zstdBytesMax: MODEL_BODY_BYTES.zstd,
    recallMs,
    upstreamHeadersMs: PROVIDER_HEADERS_MS,
    drainMs: 0,
    keepRequests: 0,
    relayPaths: [],
  };
}
