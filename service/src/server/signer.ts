import type { Clock } from '../../../src/ports/clock.ts';
import {
  type ObjectSignature,
  objectSigner,
  type ObjectSigner,
  publicJwk,
  type PublicJwk,
} from '../core/jws.ts';
import { SERVICE_TENANT } from '../core/tenants.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import type { SigningKeyRow } from '../ports/vault-store.ts';
import { ServiceFault } from './fault.ts';
import { Vault, type VaultParts } from './vault.ts';

/** Signs receipts of requests and purges, heads and totals with the active key, whose private part is in the vault. */

/** How long the list of keys is cached: not longer, because another process may rotate them. */
const FRESH_MS = 1000;

interface SignerParts {
  readonly store: ServiceStore;
  readonly vault: Vault;
  readonly clock: Clock;
}

export class Signer {
  readonly #parts: SignerParts;
  #keys: { readonly at: number; readonly rows: Promise<readonly SigningKeyRow[]> } | undefined;
  #opened: { readonly kid: string; readonly signer: Promise<ObjectSigner> } | undefined;

  constructor(parts: SignerParts) {
    this.#parts = parts;
  }

  /** Signs a value if the service has a signing key. Throws ServiceFault VAULT_UNAVAILABLE or MemoryError. */
  async sign<Value extends object>(
    value: Value,
  ): Promise<Value & { readonly signature?: ObjectSignature }> {
    const [signed = value] = await this.signAll([value]);
    return signed;
  }

  /** Signs all values with one key, if the service has any. Throws as sign() does. */
  async signAll<Value extends object>(
    values: readonly Value[],
  ): Promise<readonly (Value & { readonly signature?: ObjectSignature })[]> {
    const signer = await this.#active();
    return signer === undefined ? values : values.map((value) => signer.sign(value));
  }

  /**
   * Signs JSON objects, given as canonical JSON, with one key. Returns their signed JSON, or the same JSON if the
   * service has no key. Throws as sign() does.
   */
  async signTexts(canonical: readonly string[]): Promise<readonly string[]> {
    const signer = await this.#active();
    return signer === undefined ? canonical : canonical.map((text) => signer.signText(text));
  }

  /** Returns the active signing key; undefined if the service has none. */
  async #active(): Promise<ObjectSigner | undefined> {
    const active = (await this.#rows()).find(({ retiredAt }) => retiredAt === undefined);
    return active === undefined ? undefined : this.#open(active.kid);
  }

  /** Returns the public keys that check signatures, current and retired. */
  async publicKeys(): Promise<readonly PublicJwk[]> {
    return (await this.#rows()).map(({ x }) => publicJwk(x));
  }

  /** Returns why the signer cannot sign; undefined if it can, or if the service has no signing key. */
  async problem(): Promise<string | undefined> {
    return this.sign({}).then(
      () => undefined,
      (error: unknown) => (error instanceof ServiceFault ? error.message : 'store'),
    );
  }

  #rows(): Promise<readonly SigningKeyRow[]> {
    const { store, clock } = this.#parts;
    const at = clock.monotonic();
    if (this.#keys === undefined || at - this.#keys.at > FRESH_MS) {
      const rows = store.listSigningKeys();
      this.#keys = { at, rows };
      // An error is not cached: the next call reads the keys again.
      rows.catch(() => (this.#keys = undefined));
    }
    return this.#keys.rows;
  }

  #open(kid: string): Promise<ObjectSigner> {
    if (this.#opened?.kid === kid) return this.#opened.signer;
    const signer = this.#read(kid);
    this.#opened = { kid, signer };
    signer.catch(() => (this.#opened = undefined));
    return signer;
  }

  async #read(kid: string): Promise<ObjectSigner> {
    const { store, vault } = this.#parts;
    const sealed = await store.of(SERVICE_TENANT).findSecret(kid);
    if (sealed === undefined) {
      throw new ServiceFault('VAULT_UNAVAILABLE', 'The signing key is not in the vault.');
    }
    return objectSigner({ kid, privateKey: (await vault.open(sealed)).reveal() });
  }
}

/** Adds the vault and the signer to the dependencies that they are built from. */
export function withVault<Parts extends VaultParts & { readonly clock: Clock }>(
  parts: Parts,
): Parts & { readonly vault: Vault; readonly signer: Signer } {
  const vault = new Vault(parts);
  return { ...parts, vault, signer: new Signer({ ...parts, vault }) };
}
