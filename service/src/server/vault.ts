import {
  fingerprintOf,
  type MasterKey,
  openText,
  rewrapText,
  type SealedText,
  sealText,
  Secret,
  type SecretContext,
} from '../core/envelope.ts';
import type {
  MasterKeys,
  MasterKeyRow,
  RewrappedSecret,
  SealedSecret,
} from '../ports/vault-store.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import { ServiceFault } from './fault.ts';

/**
 * The vault: seals and opens secrets with master keys that are kept outside of the database. Several
 * may live beside each other: one seals, all open what they sealed.
 */

export interface VaultParts {
  readonly store: ServiceStore;
  readonly masterKeys: MasterKeys;
  readonly pepper: Uint8Array;
  readonly randomBytes: (count: number) => Uint8Array;
}

const CANARY = 'svc vault canary';

/** Secrets in one transaction of a rotation: a few milliseconds, after which anybody may kill it. */
const REWRAP_BATCH = 100;

export interface VaultCheck {
  readonly secrets: number;
  /** `tenant/secret` of those that do not open. */
  readonly unreadable: readonly string[];
}

export class Vault {
  readonly #parts: VaultParts;

  constructor(parts: VaultParts) {
    this.#parts = parts;
  }

  /** Throws ServiceFault VAULT_UNAVAILABLE. */
  async seal(context: SecretContext, secret: Secret, now: number): Promise<SealedSecret> {
    const { pepper, randomBytes } = this.#parts;
    const master = await this.#active();
    const text = secret.reveal();
    return {
      ...context,
      ...sealText(text, context, { master, randomBytes }),
      fingerprint: fingerprintOf(pepper, context.tenant, text),
      savedAt: now,
    };
  }

  /** Throws ServiceFault VAULT_UNAVAILABLE. */
  async open(sealed: SealedSecret): Promise<Secret> {
    const text = openText(sealed, sealed, await this.#key(sealed.kek));
    if (text === undefined) throw unavailable('A secret of the vault cannot be decrypted.');
    return new Secret(text);
  }

  /** A text that opens under this master key and under no other. */
  async canaryOf(id: string): Promise<SealedText> {
    const { randomBytes } = this.#parts;
    return sealText(CANARY, canaryContext(id), { master: await this.#key(id), randomBytes });
  }

  /** The problem; undefined if the active key fits, or there is no key. */
  async problem(): Promise<string | undefined> {
    const active = await this.#activeRow();
    if (active === undefined) return undefined;
    try {
      const master = await this.#key(active.id);
      const text = openText(active.canary, canaryContext(active.id), master);
      return text === CANARY ? undefined : `The master key ${active.id} does not fit the vault.`;
    } catch (error) {
      if (error instanceof ServiceFault) return error.message;
      throw error;
    }
  }

  /**
   * Wraps every secret with the active master key. Each batch is one transaction, and each secret
   * names its key, so an interrupted rotation continues where it stopped.
   */
  async rotate(commit: (rows: readonly RewrappedSecret[]) => Promise<void>): Promise<VaultCheck> {
    const to = await this.#active();
    let after: SealedSecret | undefined;
    let secrets = 0;
    const unreadable: string[] = [];
    for (;;) {
      // One batch after the other, on purpose: calls pass in between.
      /* oxlint-disable no-await-in-loop */
      const batch = await this.#batch(after, to.id);
      if (batch.length === 0) return { secrets, unreadable };
      const rows = await Promise.all(batch.map((sealed) => this.#rewrap(sealed, to)));
      const done = rows.filter((row) => row !== undefined);
      if (done.length > 0) await commit(done);
      /* oxlint-enable no-await-in-loop */
      secrets += done.length;
      unreadable.push(...batch.filter((_, at) => rows[at] === undefined).map(nameOf));
      after = batch.at(-1);
    }
  }

  /** Opens everything. */
  async verify(): Promise<VaultCheck> {
    let after: SealedSecret | undefined;
    let secrets = 0;
    const unreadable: string[] = [];
    for (;;) {
      /* oxlint-disable no-await-in-loop */
      const batch = await this.#batch(after);
      if (batch.length === 0) return { secrets, unreadable };
      const opened = await Promise.all(batch.map((sealed) => this.#opens(sealed)));
      /* oxlint-enable no-await-in-loop */
      secrets += batch.length;
      unreadable.push(...batch.filter((_, at) => opened[at] !== true).map(nameOf));
      after = batch.at(-1);
    }
  }

  #batch(after: SealedSecret | undefined, notUnder?: string): Promise<readonly SealedSecret[]> {
    return this.#parts.store.listSecrets({
      limit: REWRAP_BATCH,
      ...(notUnder === undefined ? {} : { notUnder }),
      ...(after === undefined ? {} : { after }),
    });
  }

  #opens(sealed: SealedSecret): Promise<boolean> {
    return this.open(sealed).then(
      () => true,
      () => false,
    );
  }

  async #rewrap(sealed: SealedSecret, to: MasterKey): Promise<RewrappedSecret | undefined> {
    const { randomBytes } = this.#parts;
    const from = await this.#key(sealed.kek).catch(() => undefined);
    const again = from && rewrapText(sealed, sealed, { from, to, randomBytes });
    if (again === undefined) return undefined;
    const { tenant, secretId, version, kek: kekBefore } = sealed;
    return { tenant, secretId, version, kekBefore, kek: again.kek, wrapped: again.wrapped };
  }

  async #active(): Promise<MasterKey> {
    const row = await this.#activeRow();
    if (row === undefined) throw unavailable('The vault has no master key: svc-service vault add');
    const wrong = await this.problem();
    if (wrong !== undefined) throw unavailable(wrong);
    return this.#key(row.id);
  }

  async #activeRow(): Promise<MasterKeyRow | undefined> {
    const rows = await this.#parts.store.listMasterKeys();
    return rows.find(({ state }) => state === 'active');
  }

  async #key(id: string): Promise<MasterKey> {
    const key = await this.#parts.masterKeys.find(id).catch(() => {
      throw unavailable(`The master key ${id} cannot be read.`);
    });
    if (key === undefined)
      throw unavailable(`The settings name no source for the master key ${id}.`);
    return { id, key };
  }
}

function canaryContext(id: string): SecretContext {
  return { tenant: 'service', secretId: 'canary', owner: id, purpose: 'canary', version: 1 };
}

function nameOf({ tenant, secretId }: SealedSecret): string {
  return `${tenant}/${secretId}`;
}

function unavailable(message: string): ServiceFault {
  return new ServiceFault('VAULT_UNAVAILABLE', message, { afterMs: 2000 });
}
