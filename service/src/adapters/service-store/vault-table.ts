import type {
  MasterKeyRow,
  MasterKeyState,
  RewrappedSecret,
  SealedSecret,
  SecretFilter,
  SigningKeyRow,
  VaultChange,
} from '../../ports/vault-store.ts';
import type { ChangeOutcome } from '../../ports/control-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';

/** Sealed secrets, master keys and signing keys as rows. */

export interface SecretRow {
  readonly tenant: string;
  readonly id: string;
  readonly owner: string;
  readonly purpose: string;
  readonly version: number;
  readonly kek: string;
  readonly wrapped: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly fingerprint: string;
  readonly saved_at: number;
}

export interface MasterRow {
  readonly id: string;
  readonly state: MasterKeyState;
  readonly wrapped: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly created_at: number;
  readonly retired_at: number | null;
  readonly secrets: number;
}

export interface SigningRow {
  readonly kid: string;
  readonly x: string;
  readonly created_at: number;
  readonly retired_at: number | null;
}

export class VaultTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  find(tenant: string, secretId: string): SealedSecret | undefined {
    const sql = 'SELECT * FROM secrets WHERE tenant = ? AND id = ?';
    const row = this.#database.get<SecretRow>(sql, tenant, secretId);
    return row === undefined ? undefined : secretOf(row);
  }

  list({ limit, notUnder, after }: SecretFilter): SealedSecret[] {
    return this.#database
      .all<SecretRow>(
        `SELECT * FROM secrets WHERE (?1 IS NULL OR kek <> ?1) AND (tenant, id) > (?2, ?3)
         ORDER BY tenant, id LIMIT ?4`,
        notUnder ?? null,
        after?.tenant ?? '',
        after?.secretId ?? '',
        limit,
      )
      .map(secretOf);
  }

  /** Replaces the secret of the same id. */
  put(secret: SealedSecret): void {
    const { tenant, secretId, owner, purpose, version, kek, wrapped, ciphertext } = secret;
    this.#database.run(
      `INSERT OR REPLACE INTO secrets
         (tenant, id, owner, purpose, version, kek, wrapped, ciphertext, fingerprint, saved_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      tenant,
      secretId,
      owner,
      purpose,
      version,
      kek,
      wrapped,
      ciphertext,
      secret.fingerprint,
      secret.savedAt,
    );
  }

  /** Destroys the secrets of an owner but those that are named. */
  removeOf(tenant: string, owner: string, kept: ReadonlySet<string> = new Set()): void {
    const sql = 'SELECT id FROM secrets WHERE tenant = ? AND owner = ?';
    for (const { id } of this.#database.all<{ id: string }>(sql, tenant, owner)) {
      if (kept.has(id)) continue;
      this.#database.run('DELETE FROM secrets WHERE tenant = ? AND id = ?', tenant, id);
    }
  }

  masterKeys(): MasterKeyRow[] {
    return this.#database
      .all<MasterRow>(
        `SELECT m.*, (SELECT count(*) FROM secrets s WHERE s.kek = m.id) AS secrets
         FROM master_keys m ORDER BY created_at, id`,
      )
      .map(masterOf);
  }

  signingKeys(): SigningKeyRow[] {
    return this.#database
      .all<SigningRow>(
        'SELECT * FROM signing_keys ORDER BY retired_at IS NOT NULL, retired_at DESC, kid',
      )
      .map(signingKeyOf);
  }

  apply(change: VaultChange): ChangeOutcome {
    switch (change.what) {
      case 'master.add':
        return this.#addMaster(change);
      case 'master.retire':
        return this.#retireMaster(change);
      case 'secrets.rewrap':
        for (const row of change.rows) this.#rewrap(row);
        return 'done';
      case 'signing.add':
        this.put(change.secret);
        this.#addSigning(change);
        return 'done';
    }
  }

  #addMaster({ id, canary, at }: Extract<VaultChange, { what: 'master.add' }>): ChangeOutcome {
    const known = this.#database.get('SELECT 1 FROM master_keys WHERE id = ?', id);
    if (known !== undefined) return 'exists';
    this.#database.run("UPDATE master_keys SET state = 'decrypt_only' WHERE state = 'active'");
    this.#database.run(
      `INSERT INTO master_keys (id, state, wrapped, ciphertext, created_at)
       VALUES (?, 'active', ?, ?, ?)`,
      id,
      canary.wrapped,
      canary.ciphertext,
      at,
    );
    return 'done';
  }

  /** Never the active one, and none that a secret still needs. */
  #retireMaster({ id, at }: { readonly id: string; readonly at: number }): ChangeOutcome {
    const key = this.masterKeys().find((one) => one.id === id);
    if (key === undefined || key.state === 'retired') return 'missing';
    if (key.state === 'active' || key.secrets > 0) return 'used';
    this.#database.run(
      "UPDATE master_keys SET state = 'retired', retired_at = ? WHERE id = ?",
      at,
      id,
    );
    return 'done';
  }

  #rewrap({ tenant, secretId, version, kekBefore, kek, wrapped }: RewrappedSecret): void {
    this.#database.run(
      `UPDATE secrets SET kek = ?, wrapped = ?
       WHERE tenant = ? AND id = ? AND version = ? AND kek = ?`,
      kek,
      wrapped,
      tenant,
      secretId,
      version,
      kekBefore,
    );
  }

  #addSigning({ kid, x, at }: { readonly kid: string; readonly x: string; readonly at: number }) {
    this.#database.run('UPDATE signing_keys SET retired_at = ? WHERE retired_at IS NULL', at);
    this.#database.run(
      'INSERT INTO signing_keys (kid, x, created_at) VALUES (?, ?, ?)',
      kid,
      x,
      at,
    );
  }
}

export function secretOf(row: SecretRow): SealedSecret {
  const { tenant, id, owner, purpose, version, kek, wrapped, ciphertext, fingerprint } = row;
  return {
    tenant,
    secretId: id,
    owner,
    purpose,
    version,
    kek,
    wrapped,
    ciphertext,
    fingerprint,
    savedAt: row.saved_at,
  };
}

export function signingKeyOf(row: SigningRow): SigningKeyRow {
  const { kid, x, created_at: createdAt, retired_at: retiredAt } = row;
  return { kid, x, createdAt, ...(retiredAt === null ? {} : { retiredAt }) };
}

export function masterOf(row: MasterRow): MasterKeyRow {
  const { id, state, wrapped, ciphertext, secrets } = row;
  return {
    id,
    state,
    canary: { kek: id, wrapped, ciphertext },
    createdAt: row.created_at,
    ...(row.retired_at === null ? {} : { retiredAt: row.retired_at }),
    secrets,
  };
}
