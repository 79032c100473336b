import { STATED_DEFAULTS } from './config-proxy.ts';
import { CONFIG_VERSION } from './config-schema.ts';
import type { Environment } from './config-values.ts';
import { asList, asRecord, isRecord } from '../bytes/json-fields.ts';
import type { Dialect } from '../conversation/view.ts';
import type { Credential } from './settings.ts';
import type { UpstreamAuth } from '../http/header-rules.ts';
import { WELL_KNOWN, type WellKnown } from './catalog.ts';

/**
 * Edits the configuration file's content. A draft keeps all other members, even unknown ones. It is not validated here:
 * saveConfig() does that before it writes.
 */
export type Draft = Readonly<Record<string, unknown>>;

export interface UpstreamDraft {
  readonly name: string;
  readonly apiStyle: Dialect;
  /**
   * The base URL; undefined keeps the one of an existing upstream with this name and style. The same holds for the
   * members below.
   */
  readonly baseUrl?: string;
  readonly providerKey?: Credential;
  readonly auth?: UpstreamAuth;
  readonly allowPrivate?: boolean;
}

export function newDraft(localToken: string): Draft {
  return {
    version: CONFIG_VERSION,
    proxy: STATED_DEFAULTS,
    memory: { kind: 'embedded' },
    upstreams: [],
    localToken,
  };
}

/**
 * Returns upstreams for Anthropic and OpenAI, if their keys are in the environment. A draft only names the variable.
 */
export function upstreamsFromEnvironment(environment: Environment): readonly UpstreamDraft[] {
  return ['anthropic', 'openai'].flatMap((name) => {
    const known = WELL_KNOWN[name];
    if (known === undefined || (environment[known.keyEnv] ?? '') === '') return [];
    return draftsOf(name, known, { providerKey: { env: known.keyEnv } });
  });
}

/** Returns one upstream per API style of the provider. */
export function draftsOf(
  name: string,
  known: WellKnown,
  changes: Omit<UpstreamDraft, 'name' | 'apiStyle'>,
): readonly UpstreamDraft[] {
  const { baseUrl, auth, allowPrivate } = known;
  return known.apiStyles.map((apiStyle) => ({
    name,
    apiStyle,
    baseUrl,
    auth,
    ...(allowPrivate ? { allowPrivate } : {}),
    ...changes,
  }));
}

/** Returns the name of another upstream that already has this API style; undefined if there is none. */
export function occupantOf(draft: Draft, { name, apiStyle }: UpstreamDraft): string | undefined {
  const occupant = upstreamsOf(draft).find((one) => asRecord(one)['apiStyle'] === apiStyle);
  const held = asRecord(occupant)['name'];
  return typeof held === 'string' && held !== name ? held : undefined;
}

export function existingUpstream(draft: Draft, name: string, apiStyle: Dialect): Draft | undefined {
  return upstreamEntries(draft).find((one) => one['name'] === name && one['apiStyle'] === apiStyle);
}

/**
 * Adds an upstream, in place of the one with the same API style. If that one has the same name, it keeps the members
 * that `upstream` does not state.
 */
export function putUpstream(draft: Draft, upstream: UpstreamDraft): Draft {
  const { name, apiStyle } = upstream;
  const upstreams = [...upstreamsOf(draft)];
  const index = upstreams.findIndex((one) => asRecord(one)['apiStyle'] === apiStyle);
  const merged = { ...existingUpstream(draft, name, apiStyle), ...upstream };
  if (index === -1) upstreams.push(merged);
  else upstreams[index] = merged;
  return { ...draft, upstreams };
}

/** Removes upstreams by name. `removed`: how many, because a provider may have several API styles under one name. */
export function removeUpstreams(
  draft: Draft,
  name: string,
): { readonly draft: Draft; readonly removed: number } {
  const all = upstreamsOf(draft);
  const upstreams = all.filter((upstream) => asRecord(upstream)['name'] !== name);
  return { draft: { ...draft, upstreams }, removed: all.length - upstreams.length };
}

export function putProxySettings(draft: Draft, changes: Draft): Draft {
  return { ...draft, proxy: { ...asRecord(draft['proxy']), ...changes } };
}

/** Returns the file's upstreams without validating them; entries that are no objects are left out. */
export function upstreamEntries(file: unknown): readonly Draft[] {
  return upstreamsOf(asRecord(file)).filter((one) => isRecord(one));
}

export function upstreamNames(draft: Draft): readonly string[] {
  const names = upstreamsOf(draft).map((upstream) => asRecord(upstream)['name']);
  return [...new Set(names.filter((name) => typeof name === 'string'))];
}

// Entries that are no objects stay in the list: parseConfig reports them, and an edit loses nothing.
function upstreamsOf(draft: Draft): readonly unknown[] {
  return asList(draft['upstreams']);
}
