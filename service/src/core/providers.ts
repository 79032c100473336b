import type { Dialect } from '../../../src/core/conversation/view.ts';
import type { Provider } from '../../../src/core/settings/catalog.ts';
import { customNameProblem, parseBaseUrl } from '../../../src/core/settings/config-upstreams.ts';

/**
 * A provider of a tenant: one address, at most one credential, one API style, and the models that requests may name.
 * Its secrets are in the vault, and TenantProvider has only their ids and fingerprints.
 */

export type ProviderKind = 'preset' | 'custom';
export type ProviderAuth = 'bearer' | 'x-api-key' | 'none';

export interface TenantProvider {
  /** `prov_` and 26 characters. */
  readonly providerId: string;
  readonly name: string;
  readonly kind: ProviderKind;
  readonly presetId?: string;
  readonly apiStyle: Dialect;
  readonly baseUrl: string;
  readonly auth: ProviderAuth;
  readonly credential?: VaultedValue;
  readonly headers: readonly CustomValue[];
  readonly query: readonly CustomValue[];
  readonly defaultModel: string;
  /** The models that svc requests of this provider: each entry is a name, or the beginning of names and a star. */
  readonly allowedModels: readonly string[];
  readonly isEnabled: boolean;
  /** Grows by one with each change. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What svc may show of a secret in the vault. */
export interface VaultedValue {
  readonly secretId: string;
  readonly fingerprint: string;
  readonly savedAt: number;
}

/** The value of a header or query parameter: either in plain text, or as the id of a secret in the vault. */
export interface CustomValue {
  readonly name: string;
  readonly value?: string;
  readonly secretId?: string;
}

/** The maximum number of providers of a tenant. A lower number in a plan replaces it; a higher one has no effect. */
export const PROVIDERS_MAX = 1000;

/** Matches a URL's host that is an IP address. URL puts IPv6 in brackets, and IPv4 as four decimal numbers. */
const ADDRESS = /^\[|^\d{1,3}(?:\.\d{1,3}){3}\.*$/;

/** Ports of providers that every service allows, as the URL class writes them: '' is 443. */
export const USUAL_PORTS: ReadonlySet<string> = new Set(['', '443', '8443']);

export interface Egress {
  /** Ports that are allowed in addition to the usual ones. */
  readonly ports: readonly number[];
  /** Private networks in which providers are allowed, such as 10.1.0.0/16. */
  readonly allow: readonly string[];
}

export const NO_EGRESS: Egress = { ports: [], allow: [] };

/** Returns the base address in its stored form, or a message for people that says what is wrong with it. */
export function readProviderBase(
  text: string,
  { ports, allow }: Egress = NO_EGRESS,
): { readonly url: string } | { readonly problem: string } {
  if (!text.startsWith('https:')) return { problem: 'is not an address that begins with https://' };
  const parsed = parseBaseUrl(text, true);
  if (!('url' in parsed)) return { problem: `is not ${parsed.allowed}` };
  const { hostname, port } = new URL(text);
  if (ADDRESS.test(hostname)) {
    return { problem: 'contains an IP address, but a certificate needs a host name' };
  }
  // If the operator allowed a private network, a host with a private name may be in it: svc checks the host's addresses
  // when it connects.
  if (allow.length === 0 && !('url' in parseBaseUrl(text, false))) {
    return {
      problem:
        'names a host in a private network: the operator can allow it with egress.allow in service.json',
    };
  }
  if (!USUAL_PORTS.has(port) && !ports.includes(Number(port))) {
    const others = 'the operator can allow others with egress.ports in service.json';
    return { problem: `has a port other than 443 and 8443: ${others}` };
  }
  return parsed;
}

/**
 * Returns the address of a catalog entry and how its key is sent. Undefined if a service may not offer the entry: the
 * entry must have a public address and this API style, and its provider must take an API key.
 */
export function presetOf(
  catalog: readonly Provider[],
  presetId: string,
  apiStyle: Dialect,
): { readonly baseUrl: string; readonly auth: ProviderAuth } | undefined {
  const found = catalog.find(({ id }) => id === presetId);
  if (found?.baseUrl === undefined || found.keyEnv === '' || found.allowPrivate) return undefined;
  if (!found.apiStyles.includes(apiStyle)) return undefined;
  const base = readProviderBase(found.baseUrl);
  if (!('url' in base) || found.auth === 'client') return undefined;
  return { baseUrl: base.url, auth: found.auth };
}

/** Stands for the credential in the value of a header or parameter. svc stores a value that contains it as a secret. */
const PLACEHOLDER = '$API_KEY';

export function isSecretValue(value: string): boolean {
  return value.includes(PLACEHOLDER);
}

/** Returns the problem, for the user, if a name cannot be sent or comes twice; otherwise undefined. */
export function customNamesProblem(
  member: 'headers' | 'query',
  names: readonly string[],
): string | undefined {
  const seen = new Set<string>();
  for (const name of names) {
    if (customNameProblem(member, name, seen) !== undefined) {
      return `has a name at place ${names.indexOf(name) + 1} that is a duplicate or cannot be sent`;
    }
  }
  return undefined;
}

export const MODEL_ID = /^[\w.:@/+~-]{1,256}$/;

/** Returns true if the entry matches the model. An entry is a name, or a prefix that ends in a star. */
export function takesModel(entry: string, model: string): boolean {
  return entry.endsWith('*') ? model.startsWith(entry.slice(0, -1)) : entry === model;
}

/**
 * Returns an entry of `allowedModels` that two enabled providers of one API style share: svc could not choose between
 * them. Different entries never clash, because the longest one that matches a model wins.
 */
export function findClash(
  one: TenantProvider,
  others: readonly TenantProvider[],
): { readonly other: TenantProvider; readonly entry: string } | undefined {
  if (!one.isEnabled) return undefined;
  for (const other of others) {
    if (other.providerId === one.providerId || !other.isEnabled) continue;
    if (other.apiStyle !== one.apiStyle) continue;
    const taken = new Set(other.allowedModels);
    const entry = one.allowedModels.find((model) => taken.has(model));
    if (entry !== undefined) return { other, entry };
  }
  return undefined;
}
