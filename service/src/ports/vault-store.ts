import type { SealedText, SecretContext } from '../core/envelope.ts';

/** The interface to encrypted secrets and to keys. No row contains a secret or a private key in plain form. */

export type MasterKeyState =
  /** The key with which new secrets are sealed. */
  | 'active'
  /** The key opens the secrets that it sealed, but seals no new ones. */
  | 'decrypt_only'
  /** No secret is sealed with this key any more. */
  | 'retired';

export interface MasterKeyRow {
  readonly id: string;
  readonly state: MasterKeyState;
  /** A known text, sealed with the master key, by which svc recognises the right key. */
  readonly canary: SealedText;
  readonly createdAt: number;
  readonly retiredAt?: number;
  /** The number of secrets that this key seals. */
  readonly secrets: number;
}

export interface SealedSecret extends SecretContext, SealedText {
  readonly fingerprint: string;
  readonly savedAt: number;
}

export interface SigningKeyRow {
  readonly kid: string;
  readonly x: string;
  /** When the key was retired; undefined for the active key. */
  readonly retiredAt?: number;
  readonly createdAt: number;
}

interface SecretFilter {
  readonly limit: number;
  /** Only secrets that are not sealed with this master key. */
  readonly notUnder?: string;
  /** The last secret that the caller has seen. */
  readonly after?: { readonly tenant: string; readonly secretId: string };
}

export interface VaultStore {
  /** Lists master keys, oldest first. */
  listMasterKeys(): Promise<readonly MasterKeyRow[]>;
  /** Lists secrets of all tenants, for the vault's own work. */
  listSecrets(filter: SecretFilter): Promise<readonly SealedSecret[]>;
  /** Lists the active signing key, then the retired ones, which stay for ever: old signatures are checked with them. */
  listSigningKeys(): Promise<readonly SigningKeyRow[]>;
}

export type VaultChange =
  /** Adds a master key, which becomes the active one. */
  | {
      readonly what: 'master.add';
      readonly id: string;
      readonly canary: SealedText;
      readonly at: number;
    }
  | { readonly what: 'master.retire'; readonly id: string; readonly at: number }
  /** Stores rewrapped secrets. Rows that changed meanwhile are left unchanged. */
  | { readonly what: 'secrets.rewrap'; readonly rows: readonly RewrappedSecret[] }
  /** Adds a signing key, which becomes the active one. */
  | {
      readonly what: 'signing.add';
      readonly kid: string;
      readonly x: string;
      readonly secret: SealedSecret;
      readonly at: number;
    };

export interface RewrappedSecret {
  readonly tenant: string;
  readonly secretId: string;
  readonly version: number;
  readonly kekBefore: string;
  readonly kek: string;
  readonly wrapped: Uint8Array;
}

export interface MasterKeys {
  /** Returns 32 bytes; undefined if the settings name no source. Rejects with FileError if the source is unreadable. */
  find(id: string): Promise<Uint8Array | undefined>;
}
