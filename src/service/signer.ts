import {
  type ObjectSignature,
  publicJwk,
  type PublicJwk,
  signObject,
} from '../core/service/jws.ts';
import type { Secret } from '../core/service/secret.ts';
import { SERVICE_TENANT } from '../core/service/tenants.ts';
import type { Clock } from '../ports/clock.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import type { SigningKeyRow } from '../ports/vault-store.ts';
import { ServiceFault } from './fault.ts';
import type { Vault } from './vault.ts';

/** Signs what a service tells for good: receipts of purges. The private key lies in the vault. */

/** Another process may rotate the key; it is looked for once in so long. */
const FRESH_MS = 1000;

interface Keys {
  readonly at: number;
  readonly rows: Promise<readonly SigningKeyRow[]>;
}

export class Signer {
  readonly #store: ServiceStore;
  readonly #vault: Vault;
  readonly #clock: Clock;
  #keys: Keys | undefined;
  #opened: { readonly kid: string; readonly key: Promise<Secret> } | undefined;

  constructor({ store, vault, clock }: { store: ServiceStore; vault: Vault; clock: Clock }) {
    this.#store = store;
    this.#vault = vault;
    this.#clock = clock;
  }

  /** Signed, once the service has a signing key. Throws ServiceFault VAULT_UNAVAILABLE. */
  async sign<Value extends object>(
    value: Value,
  ): Promise<Value & { readonly signature?: ObjectSignature }> {
    const active = (await this.#rows()).find(({ retiredAt }) => retiredAt === undefined);
    if (active === undefined) return value;
    const { kid } = active;
    const privateKey = (await this.#open(kid)).reveal();
    return signObject(value, { kid, privateKey });
  }

  /** The keys that signatures are checked with, current and retired. */
  async publicKeys(): Promise<readonly PublicJwk[]> {
    return (await this.#rows()).map(({ x }) => publicJwk(x));
  }

  /** Undefined when it can sign, or needs not. */
  async problem(): Promise<string | undefined> {
    const answer = this.sign({}).then(
      () => undefined,
      (error: unknown) => error,
    );
    const error = await answer;
    return error instanceof ServiceFault
      ? error.message
      : error === undefined
        ? undefined
        : 'store';
  }

  #rows(): Promise<readonly SigningKeyRow[]> {
    const at = this.#clock.monotonic();
    if (this.#keys === undefined || at - this.#keys.at > FRESH_MS) {
      const rows = this.#store.listSigningKeys();
      this.#keys = { at, rows };
      // A failure is not kept: the next one asks again.
      rows.catch(() => (this.#keys = undefined));
    }
    return this.#keys.rows;
  }

  #open(kid: string): Promise<Secret> {
    if (this.#opened?.kid === kid) return this.#opened.key;
    const key = this.#read(kid);
    this.#opened = { kid, key };
    key.catch(() => (this.#opened = undefined));
    return key;
  }

  async #read(kid: string): Promise<Secret> {
    const sealed = await this.#store.of(SERVICE_TENANT).findSecret(kid);
    if (sealed === undefined) {
      throw new ServiceFault('VAULT_UNAVAILABLE', 'The signing key is not in the vault.');
    }
    return this.#vault.open(sealed);
  }
}
