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
 * The vault encrypts secrets with master keys that are stored outside the database. New secrets are sealed with the
 * active key; every other key only opens the secrets that it sealed earlier.
 */

export interface VaultParts {
  readonly store: ServiceStore;
  readonly masterKeys: MasterKeys;
  readonly pepper: Uint8Array;
  readonly randomBytes: (count: number) => Uint8Array;
}

/** The text that each master key seals when it is added. A key that opens the sealed text is the right one. */
const CANARY = 'svc vault canary';

/** Maximum number of secrets that a rotation changes in one transaction, which takes a few milliseconds. */
const REWRAP_BATCH = 100;

export interface VaultCheck {
  /** The number of secrets that were tried; for a rotation, of those that it changed. */
  readonly secrets: number;
  /** The secrets that do not open, each as `tenant/secret`. */
  readonly unreadable: readonly string[];
}

export class Vault {
  readonly #parts: VaultParts;

  constructor(parts: VaultParts) {
    this.#parts = parts;
  }

  /** Seals a secret with the active master key. Throws ServiceFault VAULT_UNAVAILABLE or MemoryError. */
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

  /** Opens a secret. Throws ServiceFault VAULT_UNAVAILABLE. */
  async open(sealed: SealedSecret): Promise<Secret> {
    const text = openText(sealed, sealed, await this.#key(sealed.kek));
    if (text === undefined) throw unavailable('A secret of the vault cannot be decrypted.');
    return new Secret(text);
  }

  /** Seals a known text, which opens under this master key and no other. */
  async canaryOf(id: string): Promise<SealedText> {
    const { randomBytes } = this.#parts;
    return sealText(CANARY, canaryContext(id), { master: await this.#key(id), randomBytes });
  }

  /** Returns the problem with the active master key; undefined if it is right, or if there is none. */
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
   * Encrypts the data key of every secret with the active master key, except of those that do not open. `commit` stores
   * a batch in one transaction. An interrupted rotation can be repeated, because it skips the secrets that have the
   * active key already.
   */
  async rotate(commit: (rows: readonly RewrappedSecret[]) => Promise<void>): Promise<VaultCheck> {
    const to = await this.#active();
    const rewrap = async (batch: readonly SealedSecret[]): Promise<readonly boolean[]> => {
      const rows = await Promise.all(batch.map((sealed) => this.#rewrap(sealed, to)));
      const done = rows.filter((row) => row !== undefined);
      if (done.length > 0) await commit(done);
      return rows.map((row) => row !== undefined);
    };
    const { readable: secrets, unreadable } = await this.#pass(rewrap, to.id);
    return { secrets, unreadable };
  }

  /** Opens every secret, to check that it can be opened. */
  async verify(): Promise<VaultCheck> {
    const opens = async (sealed: SealedSecret): Promise<boolean> =>
      (await this.open(sealed).catch(() => undefined)) !== undefined;
    const { readable, unreadable } = await this.#pass((batch) => Promise.all(batch.map(opens)));
    return { secrets: readable + unreadable.length, unreadable };
  }

  /** Reads all secrets, except those under one master key. `work` returns which secrets of a batch could be opened. */
  async #pass(
    work: (batch: readonly SealedSecret[]) => Promise<readonly boolean[]>,
    notUnder?: string,
  ): Promise<{ readonly readable: number; readonly unreadable: readonly string[] }> {
    const asked = { limit: REWRAP_BATCH, ...(notUnder && { notUnder }) };
    const unreadable: string[] = [];
    let readable = 0;
    let batch = await this.#parts.store.listSecrets(asked);
    // One batch after the other, so that calls run in between.
    for (let after = batch.at(-1); after !== undefined; after = batch.at(-1)) {
      /* oxlint-disable no-await-in-loop */
      const done = await work(batch);
      readable += done.filter(Boolean).length;
      unreadable.push(...batch.filter((_, at) => done[at] !== true).map(nameOf));
      batch = await this.#parts.store.listSecrets({ ...asked, after });
      /* oxlint-enable no-await-in-loop */
    }
    return { readable, unreadable };
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
