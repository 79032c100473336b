import { MemoryError, ProxyError } from '../../../../src/core/errors.ts';
import { hashKey, isSameHash } from '../../../../src/core/memory-api/keys.ts';
import { parseServiceKey } from '../../../../src/core/memory-api/service-key.ts';
import type { UpstreamSettings } from '../../../../src/core/settings/settings.ts';
import { withinDeadline } from '../../../../src/proxy/deadline.ts';
import type { CustomValue, TenantProvider } from '../../core/providers.ts';
import { ServiceFault } from '../fault.ts';
import type { ServiceParts, ServingParts } from '../parts.ts';

/**
 * Returns a provider with its secrets decrypted. Throws ServiceFault VAULT_UNAVAILABLE if any of them cannot be opened,
 * ProxyError UPSTREAM_ADDRESS_REFUSED if the provider is this service itself, and MemoryError if the store fails.
 */
export async function openSettings(
  parts: OpeningParts,
  tenant: string,
  provider: TenantProvider,
): Promise<UpstreamSettings> {
  const { apiStyle, baseUrl, auth, name, credential } = provider;
  const open = (secretId: string) => openSecret(parts, tenant, secretId);
  const providerKey = credential === undefined ? '' : await open(credential.secretId);
  const valuesOf = async (values: readonly CustomValue[]): Promise<Record<string, string>> => {
    const pairs = values.map(async ({ name: own, value, secretId }) => {
      const text = secretId === undefined ? (value ?? '') : await open(secretId);
      return [own, text.replaceAll('$API_KEY', () => providerKey)] as const;
    });
    return Object.fromEntries(await Promise.all(pairs));
  };
  const [headers, query] = await Promise.all([
    valuesOf(provider.headers),
    valuesOf(provider.query),
  ]);
  await refuseOwnKeys(parts, [providerKey, ...Object.values(headers), ...Object.values(query)]);
  return { name, apiStyle, baseUrl, auth, providerKey, headers, query, allowPrivate: false };
}

type OpeningParts = Pick<ServingParts, 'store' | 'vault' | 'pepper'>;

async function refuseOwnKeys(parts: OpeningParts, texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    // oxlint-disable-next-line no-await-in-loop -- A provider has few texts, and requests share its settings.
    if (!(await holdsOwnKey(parts, text))) continue;
    const message = 'The provider is this service itself, so the request would never end.';
    throw new ProxyError('UPSTREAM_ADDRESS_REFUSED', message);
  }
}

/**
 * Deadline of reading and decrypting a secret. It includes the run of the program that prints the master key, if the
 * settings name one.
 */
const OPEN_MS = 5_000;

async function openSecret(
  { store, vault }: OpeningParts,
  tenant: string,
  secretId: string,
): Promise<string> {
  try {
    const opened = await withinDeadline(OPEN_MS, async () => {
      const sealed = await store.of(tenant).findSecret(secretId);
      return sealed === undefined ? undefined : vault.open(sealed);
    });
    if (opened !== undefined) return opened.reveal();
  } catch (error) {
    if (!(error instanceof ServiceFault) && !(error instanceof MemoryError)) throw error;
  }
  const message = 'The credential of the provider cannot be decrypted.';
  throw new ServiceFault('VAULT_UNAVAILABLE', message);
}

/** Matches keys of a service in a text. */
const KEYS = /svc_live_[0-9A-Za-z_]+/g;

/**
 * Says whether a text contains a key of this service, of any tenant. A provider whose secret contains one is this
 * service, under whatever address, because only this service accepts the key.
 */
export async function holdsOwnKey(
  { store, pepper }: Pick<ServiceParts, 'store' | 'pepper'>,
  text: string,
): Promise<boolean> {
  for (const [key] of text.matchAll(KEYS)) {
    const { publicId } = parseServiceKey(key) ?? {};
    if (publicId === undefined) continue;
    // oxlint-disable-next-line no-await-in-loop -- A credential holds one key.
    const caller = await store.findCaller(publicId, AbortSignal.timeout(STORE_MS));
    if (caller === undefined) continue;
    const hash = hashKey(pepper, key);
    const hashes = [caller.key.hash, ...(caller.key.retired ?? []).map((one) => one.hash)];
    if (hashes.some((one) => isSameHash(one, hash))) return true;
  }
  return false;
}

const STORE_MS = 2_000;
