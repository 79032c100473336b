import { Buffer } from 'node:buffer';
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { shortText } from './ids.ts';

/**
 * Envelope encryption of secrets. Each secret has its own data key, which a master key encrypts. Both layers are
 * AES-256-GCM and bound to their context, so a ciphertext that is moved to another tenant, owner, purpose or version
 * cannot be decrypted.
 */

/**
 * Where a secret belongs. Its ciphertext can be decrypted only with exactly these facts. None of them contains `|`,
 * which separates them, so different facts never give the same bytes.
 */
export interface SecretContext {
  readonly tenant: string;
  readonly secretId: string;
  readonly owner: string;
  readonly purpose: string;
  readonly version: number;
}

export interface SealedText {
  /** The id of the master key. */
  readonly kek: string;
  /** The secret's data key, encrypted with the master key. */
  readonly wrapped: Uint8Array;
  /** The secret, encrypted with its data key. */
  readonly ciphertext: Uint8Array;
}

export interface MasterKey {
  readonly id: string;
  /** A key of 32 bytes. */
  readonly key: Uint8Array;
}

export type RandomBytes = (count: number) => Uint8Array;

export const MASTER_KEY_BYTES = 32;
const DATA_KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export function sealText(
  text: string,
  context: SecretContext,
  { master, randomBytes }: { readonly master: MasterKey; readonly randomBytes: RandomBytes },
): SealedText {
  const dataKey = randomBytes(DATA_KEY_BYTES);
  const wrapped = encrypt(dataKey, {
    key: master.key,
    nonce: randomBytes(NONCE_BYTES),
    context: wrapContext(master.id, context),
  });
  const ciphertext = encrypt(Buffer.from(text, 'utf8'), {
    key: dataKey,
    nonce: randomBytes(NONCE_BYTES),
    context: textContext(context),
  });
  return { kek: master.id, wrapped, ciphertext };
}

/** Decrypts a secret; undefined for a wrong master key, context or ciphertext. */
export function openText(
  { wrapped, ciphertext }: SealedText,
  context: SecretContext,
  master: MasterKey,
): string | undefined {
  const dataKey = decrypt(wrapped, { key: master.key, context: wrapContext(master.id, context) });
  if (dataKey === undefined) return undefined;
  const text = decrypt(ciphertext, { key: dataKey, context: textContext(context) });
  return text?.toString('utf8');
}

export interface Rewrap {
  readonly from: MasterKey;
  readonly to: MasterKey;
  readonly randomBytes: RandomBytes;
}

/** Re-encrypts a secret's data key with another master key; undefined if `from` does not decrypt the data key. */
export function rewrapText(
  { wrapped, ciphertext }: SealedText,
  context: SecretContext,
  { from, to, randomBytes }: Rewrap,
): SealedText | undefined {
  const dataKey = decrypt(wrapped, { key: from.key, context: wrapContext(from.id, context) });
  if (dataKey === undefined) return undefined;
  const again = encrypt(dataKey, {
    key: to.key,
    nonce: randomBytes(NONCE_BYTES),
    context: wrapContext(to.id, context),
  });
  return { kek: to.id, wrapped: again, ciphertext };
}

/**
 * Returns a fingerprint that shows whether two secrets of a tenant are equal, without revealing them: `fp_` and 8
 * characters. Equal secrets of two tenants have different fingerprints.
 */
export function fingerprintOf(pepper: Uint8Array, tenant: string, text: string): string {
  const hash = createHmac('sha256', pepper).update(`svc-fp/1|${tenant}|${text}`).digest();
  // The fingerprint has 40 of the hash's 256 bits.
  return `fp_${shortText(hash.subarray(0, 8))}`;
}

function wrapContext(kek: string, { tenant, secretId }: SecretContext): Buffer {
  return contextOf(['svc-vault-dek/1', kek, tenant, secretId]);
}

function textContext({ tenant, secretId, owner, purpose, version }: SecretContext): Buffer {
  return contextOf(['svc-vault/1', tenant, secretId, owner, purpose, String(version)]);
}

function contextOf(parts: readonly string[]): Buffer {
  if (parts.some((part) => part.includes('|'))) throw new TypeError('A context has no bar.');
  return Buffer.from(parts.join('|'), 'utf8');
}

interface Cipher {
  readonly key: Uint8Array;
  readonly context: Uint8Array;
}

/** Returns nonce, ciphertext and tag, concatenated. */
function encrypt(
  plain: Uint8Array,
  { key, nonce, context }: Cipher & { nonce: Uint8Array },
): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(context);
  const body = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([nonce, body, cipher.getAuthTag()]);
}

function decrypt(sealed: Uint8Array, { key, context }: Cipher): Buffer | undefined {
  const bytes = Buffer.from(sealed);
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(context);
  decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
  const body = bytes.subarray(NONCE_BYTES, bytes.length - TAG_BYTES);
  try {
    return Buffer.concat([decipher.update(body), decipher.final()]);
  } catch {
    return undefined;
  }
}

/** A secret that cannot be printed by accident: it appears as `[secret]`. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Returns the value. Call it only at the place of use, and keep no copy. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  /** Node calls this when it prints the object. */
  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}
