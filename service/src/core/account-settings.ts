import { closed, flag, type Infer, integer, oneOf } from '../../../src/core/memory-api/shape.ts';
import { RECALL_QUIET_PERCENT } from '../../../src/core/settings/config-proxy.ts';
import type { HandlerSettings } from '../../../src/core/settings/settings.ts';
import { COMPRESSION_MODES } from '../../../src/core/http/modes.ts';

/**
 * How a service handles a tenant's requests, if a request's headers do not say otherwise. Each row is a setting: the
 * shape of its value, its default `otherwise`, and its flag of `svc-service settings set`.
 */
export const ACCOUNT_SETTINGS = {
  compression_mode: {
    shape: oneOf(...COMPRESSION_MODES),
    otherwise: 'deterministic',
    flags: '--compression-mode <mode>',
    about: 'passthrough, shadow or deterministic',
  },
  input_budget: {
    shape: integer(1024, 2_000_000),
    otherwise: 8192,
    flags: '--input-budget <tokens>',
    about: 'input tokens above which svc shortens (8192)',
  },
  recalled_tokens_max: {
    shape: integer(0, 8192),
    otherwise: 512,
    flags: '--recalled-tokens <tokens>',
    about: 'limit for recalled tokens (512)',
  },
  elision_enabled: {
    shape: flag,
    otherwise: true,
    flags: '--elision <state>',
    about: 'on or off',
  },
  elision_keep_rounds: {
    shape: integer(1, 64),
    otherwise: 4,
    flags: '--keep-rounds <number>',
    about: 'number of newest rounds whose outputs stay (4)',
  },
  elision_capture_limit: {
    shape: integer(1, 64),
    otherwise: 8,
    flags: '--capture-limit <number>',
    about: 'limit for outputs stored in one request (8)',
  },
} as const;

type Rows = typeof ACCOUNT_SETTINGS;
type Name = keyof Rows;
export type Camel<Text> = Text extends `${infer Word}_${infer Rest}`
  ? `${Word}${Capitalize<Camel<Rest>>}`
  : Text;

export type AccountSettings = {
  readonly [Key in Name as Camel<Key>]: Infer<Rows[Key]['shape']>;
};

/** The settings with their version: 0 if they were never changed, and one more after each change. */
export type StoredSettings = AccountSettings & { readonly version: number };

// Returns an object with the result of `of` for each row. TypeScript cannot derive its members, so the callers cast.
/* oxlint-disable typescript/no-unsafe-type-assertion */
function mapped<Value>(of: (row: Rows[Name]) => Value, nameOf = (name: string) => name) {
  const rows = Object.entries(ACCOUNT_SETTINGS);
  return Object.fromEntries(rows.map(([name, row]) => [nameOf(name), of(row)]));
}

export const ACCOUNT_DEFAULTS = mapped(({ otherwise }) => otherwise, camelOf) as AccountSettings;

/** The body of a change. Settings that it does not name keep their values. */
export const settingsUpdate = closed(
  {},
  mapped(({ shape }) => shape) as { readonly [Key in Name]: Rows[Key]['shape'] },
);
type SettingsUpdate = Infer<typeof settingsUpdate>;

export function withUpdate(before: AccountSettings, change: SettingsUpdate): AccountSettings {
  const given = Object.entries(change).map(([name, value]) => [camelOf(name), value]);
  return { ...before, ...(Object.fromEntries(given) as Partial<AccountSettings>) };
}
/* oxlint-enable typescript/no-unsafe-type-assertion */

export function settingsWire(settings: StoredSettings): Readonly<Record<string, unknown>> {
  const values: Readonly<Record<string, unknown>> = settings;
  const names = Object.keys(ACCOUNT_SETTINGS);
  return Object.fromEntries([...names, 'version'].map((name) => [name, values[camelOf(name)]]));
}

export function camelOf(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Bounds on a model request's body, in bytes, equal to the local proxy's defaults. `decoded` bounds every body after
 * decompression, and `zstd` a body compressed with zstd before decompression.
 */
export const MODEL_BODY_BYTES = { decoded: 64 << 20, zstd: 16 << 20 } as const;

/** Deadline of the head of a provider's answer: ten minutes, because a reasoning model may think for minutes first. */
export const PROVIDER_HEADERS_MS = 600_000;

/** Default deadline of a recall in milliseconds, equal to the default of a local proxy without a memory service. */
export const RECALL_MS = 300;

/**
 * Returns the settings with which the proxy's handler serves a tenant. `canReadAgain`: the client can read a left-out
 * text again at the service's public address. If it cannot, no tool output is left out.
 */
export function servedSettings(
  account: AccountSettings,
  { recallMs, canReadAgain }: { readonly recallMs: number; readonly canReadAgain: boolean },
): HandlerSettings {
  return {
    ...account,
    elisionEnabled: account.elisionEnabled && canReadAgain,
    // An upper bound: the scopes of the key and the request's header may lower this mode.
    memoryMode: 'read-write',
    sessionBrief: true,
    recallQuietPercent: RECALL_QUIET_PERCENT,
    cacheTtl: 'client',
    // Off, because a user chooses these only for their own machine and key.
    secondLook: 'off',
    boundShortening: 'off',
    holdOut: false,
    recallMs,
    upstreamHeadersMs: PROVIDER_HEADERS_MS,
    keepRequests: 0,
  };
}
