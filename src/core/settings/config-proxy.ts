import {
  BOUND_SHORTENINGS,
  type BoundShortening,
  CACHE_TTLS,
  type CacheTtl,
  type ProxySettings,
  SECOND_LOOKS,
  type SecondLook,
} from './settings.ts';
import {
  COMPRESSION_MODES,
  type CompressionMode,
  MEMORY_MODES,
  type MemoryMode,
} from '../http/modes.ts';
import { describe, type Environment, type Findings } from './config-values.ts';
import { asRecord, isRecord } from '../bytes/json-fields.ts';

/**
 * The settings of the proxy: one table with default, range and parser of each. A flag overrides an environment
 * variable, which overrides the file, which overrides the default.
 */

export type ProxySettingName = keyof ProxySettings;

/** Values from the command line, as the user typed them. */
export type ProxyFlags = Readonly<Partial<Record<ProxySettingName, string>>>;

interface Field<T> {
  readonly fallback: T;
  /** The allowed values, as the rest of the sentence 'expected …'. */
  readonly allowed: string;
  /** Reads the value in the file; undefined if it is invalid. */
  read(value: unknown): T | undefined;
  /** Reads the text of a variable or a flag; undefined if it is invalid. */
  parse(text: string): T | undefined;
}

/** The settings with a flag. The others can be set in the file and by environment variables. */
export const PROXY_FLAG_NAMES = [
  'host',
  'port',
  'memoryMode',
  'compressionMode',
  'inputBudget',
  'recalledTokensMax',
] as const satisfies readonly ProxySettingName[];

const MIB = 1024 * 1024;

// Matches paths that no server rewrites, because svc compares paths exactly.
const RELAY_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~!$&'()*+,;=:@-]+)+$/;
const RELAY_PATHS_MAX = 100;

/**
 * Default of recallQuietPercent, in a proxy and in a service. It was measured on labelled prompts of two projects;
 * `npm run bench:recall` shows the numbers.
 */
export const RECALL_QUIET_PERCENT = 50;

const FIELDS: { readonly [Name in ProxySettingName]: Field<ProxySettings[Name]> } = {
  // Only programs on this machine can reach a loopback address.
  host: oneOf(['127.0.0.1', '::1'], '127.0.0.1'),
  port: whole(8765, { min: 0, max: 65_535 }),
  memoryMode: oneOf<MemoryMode>(MEMORY_MODES, 'read-write'),
  compressionMode: oneOf<CompressionMode>(COMPRESSION_MODES, 'deterministic'),
  // The largest window on the market has ten million tokens.
  inputBudget: whole(8192, { min: 0, max: 10_000_000 }),
  // A larger block would be more than a quarter of a common window.
  recalledTokensMax: whole(512, { min: 0, max: 32_768 }),
  sessionBrief: flag(true),
  recallQuietPercent: whole(RECALL_QUIET_PERCENT, { min: 0, max: 100 }),
  secondLook: oneOf<SecondLook>(SECOND_LOOKS, 'on'),
  // Off by default: svc replaces an output of a tool only if the user wants it.
  hookCut: flag(false),
  elisionEnabled: flag(true),
  elisionKeepRounds: whole(4, { min: 0, max: 1000 }),
  elisionCaptureLimit: whole(8, { min: 0, max: 1000 }),
  // Off by default: svc asks the provider for a longer cache only if the user wants it.
  cacheTtl: oneOf<CacheTtl>(CACHE_TTLS, 'client'),
  boundShortening: oneOf<BoundShortening>(BOUND_SHORTENINGS, 'off'),
  // The maximum is what V8 can hold in one string, just under 512 MiB.
  bodyBytesMax: whole(64 * MIB, { min: 1024, max: 511 * MIB }),
  zstdBytesMax: whole(16 * MIB, { min: 1024, max: 511 * MIB }),
  // With a hosted memory the default is 600; see HOSTED_FALLBACKS.
  recallMs: whole(300, { min: 1, max: 10_000 }),
  // A reasoning model may think for ten minutes before its first byte.
  upstreamHeadersMs: whole(600_000, { min: 1000, max: 3_600_000 }),
  drainMs: whole(10_000, { min: 0, max: 600_000 }),
  holdOut: flag(false),
  // By default svc keeps no body. Fifty of 1 MB are as many as a user can look through.
  keepRequests: whole(0, { min: 0, max: 50 }),
  relayPaths: paths(),
};

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- FIELDS has exactly these keys.
const NAMES = Object.keys(FIELDS) as ProxySettingName[];

/** The settings that a new file contains, so that a user who opens it sees them. */
export const STATED_DEFAULTS = {
  host: FIELDS.host.fallback,
  port: FIELDS.port.fallback,
  memoryMode: FIELDS.memoryMode.fallback,
  compressionMode: FIELDS.compressionMode.fallback,
  inputBudget: FIELDS.inputBudget.fallback,
  recalledTokensMax: FIELDS.recalledTokensMax.fallback,
  elisionEnabled: FIELDS.elisionEnabled.fallback,
  elisionKeepRounds: FIELDS.elisionKeepRounds.fallback,
  elisionCaptureLimit: FIELDS.elisionCaptureLimit.fallback,
} as const satisfies Partial<ProxySettings>;

export interface Layers {
  readonly environment: Environment;
  readonly flags?: ProxyFlags;
  /** Defaults of this configuration that override the table's. */
  readonly fallbacks?: Partial<ProxySettings>;
}

/** Reads the settings from all sources, notes each invalid value and skips it. `value`: the file's member `proxy`. */
export function readProxySettings(
  value: unknown,
  layers: Layers,
  findings: Findings,
): ProxySettings {
  if (value !== undefined && !isRecord(value)) findings.problem('proxy', value, 'an object');
  const stored = asRecord(value);
  findings.warnUnknown('proxy', stored, NAMES);
  const settings = Object.fromEntries(
    NAMES.map((name) => [name, readSetting(name, stored[name], layers, findings)]),
  );
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Each was read as its row says.
  return settings as unknown as ProxySettings;
}

/** Parses a flag's value for the file; undefined if it is invalid. */
export function parseProxySetting(name: ProxySettingName, text: string): unknown {
  return FIELDS[name].parse(text);
}

/** Returns the variable of a setting: `SVC_INPUT_BUDGET`. */
function variableOf(name: string): string {
  return `SVC_${words(name).join('_').toUpperCase()}`;
}

/** Returns the environment without variables that set settings; those with keys stay. */
export function withoutSettings(environment: Environment): Environment {
  const names = new Set(NAMES.map((name) => variableOf(name)));
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !names.has(name)));
}

/** Returns the flag of a setting: `--input-budget`. */
export function flagNameOf(name: ProxySettingName): string {
  return `--${words(name).join('-').toLowerCase()}`;
}

// Check every source, even one that is overridden: an invalid file is an error even with a flag.
function readSetting<Name extends ProxySettingName>(
  name: Name,
  stored: unknown,
  layers: Layers,
  findings: Findings,
): ProxySettings[Name] {
  const field: Field<ProxySettings[Name]> = FIELDS[name];
  const fromFile = stored === undefined ? undefined : field.read(stored);
  if (stored !== undefined && fromFile === undefined) {
    findings.problem(`proxy.${name}`, stored, field.allowed);
  }
  const parse = (text: string | undefined, origin: string): ProxySettings[Name] | undefined => {
    if (text === undefined) return undefined;
    const parsed = field.parse(text);
    if (parsed === undefined) {
      const found = describe(text);
      findings.problems.push({ path: `proxy.${name}`, origin, found, allowed: field.allowed });
    }
    return parsed;
  };
  const variable = variableOf(name);
  // Treat an empty variable as unset: that is how a shell unsets it for a single command.
  const fromVariable = parse(layers.environment[variable] || undefined, variable);
  const fromFlag = parse(layers.flags?.[name], flagNameOf(name));
  return fromFlag ?? fromVariable ?? fromFile ?? layers.fallbacks?.[name] ?? field.fallback;
}

function words(name: string): string[] {
  return name.split(/(?=[A-Z])/);
}

function oneOf<T extends string>(values: readonly T[], fallback: T): Field<T> {
  const find = (value: unknown): T | undefined => values.find((known) => known === value);
  return { fallback, allowed: `one of ${values.join(', ')}`, read: find, parse: find };
}

function whole(fallback: number, range: { min: number; max: number }): Field<number> {
  const read = (value: unknown): number | undefined =>
    Number.isInteger(value) && Number(value) >= range.min && Number(value) <= range.max
      ? Number(value)
      : undefined;
  return {
    fallback,
    allowed: `a whole number from ${range.min} to ${range.max}`,
    read,
    parse: (text) => (/^\d{1,10}$/.test(text) ? read(Number(text)) : undefined),
  };
}

function flag(fallback: boolean): Field<boolean> {
  return {
    fallback,
    allowed: 'true or false',
    read: (value) => (typeof value === 'boolean' ? value : undefined),
    parse: (text) => {
      if (/^(?:true|on|1)$/.test(text)) return true;
      return /^(?:false|off|0)$/.test(text) ? false : undefined;
    },
  };
}

function paths(): Field<readonly string[]> {
  const read = (value: unknown): readonly string[] | undefined => {
    if (!Array.isArray(value) || value.length > RELAY_PATHS_MAX) return undefined;
    const list: readonly unknown[] = value;
    return list.every(isRelayPath) ? list : undefined;
  };
  return {
    fallback: [],
    allowed: `a list of at most ${RELAY_PATHS_MAX} paths such as /v1/embeddings`,
    read,
    parse: (text) => read(text.split(',').map((path) => path.trim())),
  };
}

function isRelayPath(path: unknown): path is string {
  return typeof path === 'string' && path.length <= 1024 && RELAY_PATH.test(path);
}
