import type { SealedText, SecretContext } from '../core/envelope.ts';

/** Sealed secrets and the keys around them, as rows. Nothing here holds a text or a key in the clear. */

export type MasterKeyState =
  /** New secrets are sealed with it. */
  | 'active'
  /** Secrets that it sealed still open. */
  | 'decrypt_only'
  /** No secret is under it any more. */
  | 'retired';

export interface MasterKeyRow {
  readonly id: string;
  readonly state: MasterKeyState;
  /** A known text: it opens under the right key and under no other. */
  readonly canary: SealedText;
  readonly createdAt: number;
  readonly retiredAt?: number;
  /** Secrets under it. */
  readonly secrets: number;
}

export interface SealedSecret extends SecretContext, SealedText {
  readonly fingerprint: string;
  readonly savedAt: number;
}

export interface SigningKeyRow {
  readonly kid: string;
  /** The public key. */
  readonly x: string;
  /** Undefined for the one that signs. */
  readonly retiredAt?: number;
  readonly createdAt: number;
}

interface SecretFilter {
  readonly limit: number;
  /** Only secrets under other master keys. */
  readonly notUnder?: string;
  /** The last secret that the caller has seen. */
  readonly after?: { readonly tenant: string; readonly secretId: string };
}

export interface VaultStore {
  /** Oldest first. */
  listMasterKeys(): Promise<readonly MasterKeyRow[]>;
  /** Secrets of all tenants, for the vault's own work. */
  listSecrets(filter: SecretFilter): Promise<readonly SealedSecret[]>;
  /** Newest first; retired ones stay for ever, so that old signatures can be checked. */
  listSigningKeys(): Promise<readonly SigningKeyRow[]>;
}

export type VaultChange =
  /** The key becomes the active one. */
  | {
      readonly what: 'master.add';
      readonly id: string;
      readonly canary: SealedText;
      readonly at: number;
    }
  | { readonly what: 'master.retire'; readonly id: string; readonly at: number }
  /** Rows that changed meanwhile are left as they are. */
  | { readonly what: 'secrets.rewrap'; readonly rows: readonly RewrappedSecret[] }
  /** The key becomes the one that signs. */
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

/** Master keys of a vault, kept outside of the database. */
export interface MasterKeys {
  /** 32 bytes; undefined when no source is named for it. Rejects with FileError when it cannot be read. */
  find(id: string): Promise<Uint8Array | undefined>;
}
