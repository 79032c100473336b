import { flag, type Infer, integer, members, oneOf } from '../../../src/core/memory-api/shape.ts';
import {
  COMPRESSION_MODES,
  type CompressionMode,
  type HandlerSettings,
} from '../../../src/core/settings/settings.ts';

/** How a service handles the requests of one tenant, where a request does not say otherwise. */

export interface AccountSettings {
  readonly compressionMode: CompressionMode;
  /** Estimated tokens above which shortening begins. */
  readonly inputBudget: number;
  readonly recalledTokensMax: number;
  readonly elisionEnabled: boolean;
  readonly elisionKeepRounds: number;
  readonly elisionCaptureLimit: number;
}

/** The same with the number of their last change; 0 for unchanged settings. */
export interface StoredSettings extends AccountSettings {
  readonly version: number;
}

export const ACCOUNT_DEFAULTS: AccountSettings = {
  compressionMode: 'deterministic',
  inputBudget: 8192,
  recalledTokensMax: 512,
  elisionEnabled: true,
  elisionKeepRounds: 4,
  elisionCaptureLimit: 8,
};

/** A change as it is asked for: what is left out stays. */
export const settingsUpdate = members(
  {},
  {
    compression_mode: oneOf(...COMPRESSION_MODES),
    input_budget: integer(1024, 2_000_000),
    recalled_tokens_max: integer(0, 8192),
    elision_enabled: flag,
    elision_keep_rounds: integer(1, 64),
    elision_capture_limit: integer(1, 64),
  },
  { closed: true },
);
type SettingsUpdate = Infer<typeof settingsUpdate>;

export function withUpdate(before: AccountSettings, change: SettingsUpdate): AccountSettings {
  return {
    compressionMode: change.compression_mode ?? before.compressionMode,
    inputBudget: change.input_budget ?? before.inputBudget,
    recalledTokensMax: change.recalled_tokens_max ?? before.recalledTokensMax,
    elisionEnabled: change.elision_enabled ?? before.elisionEnabled,
    elisionKeepRounds: change.elision_keep_rounds ?? before.elisionKeepRounds,
    elisionCaptureLimit: change.elision_capture_limit ?? before.elisionCaptureLimit,
  };
}

export function settingsWire({ version, ...settings }: StoredSettings) {
  return {
    compression_mode: settings.compressionMode,
    input_budget: settings.inputBudget,
    recalled_tokens_max: settings.recalledTokensMax,
    elision_enabled: settings.elisionEnabled,
    elision_keep_rounds: settings.elisionKeepRounds,
    elision_capture_limit: settings.elisionCaptureLimit,
    version,
  };
}

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
): HandlerSettings {
  return {
    compressionMode: account.compressionMode,
    inputBudget: account.inputBudget,
    recalledTokensMax: account.recalledTokensMax,
    elisionEnabled: account.elisionEnabled && canReadAgain,
    elisionKeepRounds: account.elisionKeepRounds,
    elisionCaptureLimit: account.elisionCaptureLimit,
    // The scopes of the key and the header lower it.
    memoryMode: 'read-write',
    sessionBrief: true,
    recallQuietPercent: 65,
    // A person's choice for their own machine, as `boundShortening` is.
    secondLook: 'off',
    cacheTtl: 'client',
    // A person's choice for their own machine and key.
    boundShortening: 'off',
    recallMs,
    upstreamHeadersMs: PROVIDER_HEADERS_MS,
    keepRequests: 0,
  };
}
