import { MemoryError, ProxyError } from '../../../../src/core/errors.ts';
import type { CustomValue, TenantProvider } from '../../core/providers.ts';
import type { UpstreamSettings } from '../../../../src/core/settings/settings.ts';
import { withinDeadline } from '../../../../src/proxy/deadline.ts';
import { ServiceFault } from '../fault.ts';
import { holdsOwnKey } from '../own-keys.ts';
import type { ServingParts } from '../parts.ts';

/**
 * A provider with its secrets opened. Throws ProxyError VAULT_UNAVAILABLE, also where only one of them
 * does not open, and UPSTREAM_ADDRESS_REFUSED where it leads back to this service.
 */
export async function openSettings(
  parts: OpeningParts,
  tenant: string,
  provider: TenantProvider,
): Promise<UpstreamSettings> {
  const opener = new Opener(parts, tenant);
  const { apiStyle, baseUrl, auth, name, credential } = provider;
  const providerKey = credential === undefined ? '' : await opener.open(credential.secretId);
  const values = (given: readonly CustomValue[]) => opener.valuesOf(given, providerKey);
  const [headers, query] = await Promise.all([values(provider.headers), values(provider.query)]);
  await refuseOwnKeys(parts, [providerKey, ...Object.values(headers), ...Object.values(query)]);
  return { name, apiStyle, baseUrl, auth, providerKey, headers, query, allowPrivate: false };
}

type OpeningParts = Pick<ServingParts, 'store' | 'vault' | 'pepper'>;

async function refuseOwnKeys(parts: OpeningParts, texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    // oxlint-disable-next-line no-await-in-loop -- Few, and only for a new version of a provider.
    if (!(await holdsOwnKey(parts, text))) continue;
    const message = 'The provider is this service itself, so the request would never end.';
    throw new ProxyError('UPSTREAM_ADDRESS_REFUSED', message);
  }
}

/** The store, and where its master key comes from a program that program too. */
const OPEN_MS = 5_000;

class Opener {
  readonly #parts: Pick<ServingParts, 'store' | 'vault'>;
  readonly #tenant: string;

  constructor(parts: Pick<ServingParts, 'store' | 'vault'>, tenant: string) {
    this.#parts = parts;
    this.#tenant = tenant;
  }

  async open(secretId: string): Promise<string> {
    const { store, vault } = this.#parts;
    try {
      const opened = await withinDeadline(OPEN_MS, async () => {
        const sealed = await store.of(this.#tenant).findSecret(secretId);
        return sealed === undefined ? undefined : vault.open(sealed);
      });
      if (opened !== undefined) return opened.reveal();
    } catch (error) {
      if (!(error instanceof ServiceFault) && !(error instanceof MemoryError)) throw error;
    }
    throw new ProxyError(
      'VAULT_UNAVAILABLE',
      'The credential of the provider cannot be decrypted.',
    );
  }

  async valuesOf(
    values: readonly CustomValue[],
    key: string,
  ): Promise<Readonly<Record<string, string>>> {
    const pairs = values.map(async ({ name, value, secretId }) => {
      const text = secretId === undefined ? (value ?? '') : await this.open(secretId);
      return [name, text.replaceAll('$API_KEY', () => key)] as const;
    });
    return Object.fromEntries(await Promise.all(pairs));
  }
}
