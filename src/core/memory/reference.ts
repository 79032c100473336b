import { Buffer } from 'node:buffer';
import { createHash, hash } from 'node:crypto';

/**
 * Computes all digests and references of memories. A text has the same digest wherever it is stored. The reference of a
 * text (`m_…`) names it in commands and in texts that svc adds to requests. In the memory API a record may hold several
 * texts, and the digest of its canonical bytes names it. Digests and references are in stored rows, files and years-old
 * conversations, so their computation must never change.
 */

export type TextRole = 'user' | 'assistant' | 'tool';

/** Fields that are equal in the records of all tool outputs: svc does not store in which exchange an output was. */
export const OUTPUT_PLACE = { role: 'tool', fingerprint: '', exchange: 0 } as const;

/** Returns the digest of a text: base64url SHA-256 over the role, a line feed and the text. */
export function textDigest(role: TextRole, said: string | Uint8Array): string {
  // Use the one-shot hash(), which takes a third of the time of createHash().
  if (typeof said === 'string') return hash('sha256', `${role}\n${said}`, 'base64url');
  return createHash('sha256').update(`${role}\n`).update(said).digest('base64url');
}

/** Bytes of a digest in a reference. With 80 bits, any two of 10^6 records share one with a chance of 1 in 10^12. */
const REFERENCE_BYTES = 10;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
/** Matches a SHA-256 hash in base64url without padding. */
const DIGEST = /^[A-Za-z0-9_-]{43}$/;

/** Matches every reference in a text. Use it only with `match` and `matchAll`, which keep no state. */
export const REFERENCES = /\bm_[a-z2-7]{16}\b/g;

export function isDigest(value: string): boolean {
  return DIGEST.test(value);
}

/** Returns `m_` and 16 characters of lower-case base32, from the digest's first 10 bytes. */
export function referenceOf(digest: string): string {
  return `m_${base32Of(digest)}`;
}

/**
 * Returns the beginning of a reference, for texts with few tokens. It has 40 bits, so any two of 1,000 records share
 * one with a chance of 1 in 10^6. A beginning that several records share finds none of them.
 */
export function shortReference(reference: string): string {
  return reference.slice(0, SHORT_CHARS);
}

/** Says whether a text is the beginning of a reference, with at least four characters after `m_`. */
export function isShortReference(text: string): boolean {
  return SHORT.test(text);
}

/** Says whether a text is a whole reference of the memory API: of a text, or of another kind of record. */
export function isReference(text: string): boolean {
  return REFERENCE.test(text);
}

const REFERENCE = /^(?:m|ex|to|nt)_[a-z2-7]{16}$/;

/** Says whether a text is a whole reference, or the beginning of one. */
export function isReferenceStart(text: string): boolean {
  return isWholeReference(text) || SHORT.test(text);
}

export function isWholeReference(text: string): boolean {
  return /^m_[a-z2-7]{16}$/.test(text);
}

/** Length of a shortened reference: `m_` and eight characters. */
const SHORT_CHARS = 10;
/** Matches beginnings of references. Fewer than four characters after `m_` are likely a mistake. */
const SHORT = /^m_[a-z2-7]{4,15}$/;

/**
 * Longest text, in tokens, that svc returns whole for its reference. A typical output that svc leaves out is twice as
 * long, and the median function is shorter.
 */
export const EXCERPT_TOKENS_MAX = 1_500;

/** Writes the first 80 bits of a base64url digest in base32. */
function base32Of(digest: string): string {
  return base32(Buffer.from(digest, 'base64url').subarray(0, REFERENCE_BYTES), ALPHABET);
}

const DIGEST_START = 'sha256:';

/** Returns `sha256:` and the base64url SHA-256 of a record's canonical bytes. */
export function contentDigest(bytes: Uint8Array): string {
  return DIGEST_START + hash('sha256', bytes, 'base64url');
}

type ContentKind = 'exchange' | 'tool_output' | 'note';

const REFERENCE_STARTS: Readonly<Record<ContentKind, string>> = {
  exchange: 'ex_',
  tool_output: 'to_',
  note: 'nt_',
};

/** Returns the record's kind and the first 80 bits of its digest, in lower-case base32. */
export function contentReference(kind: ContentKind, digest: string): string {
  return REFERENCE_STARTS[kind] + base32Of(digest.slice(DIGEST_START.length));
}

/**
 * Encodes five bits per digit, the highest first. `leading`: how many zero bits precede the bytes. The last digit is
 * padded with zeros. The digits are written into a buffer, because V8 keeps a string that is built digit by digit as a
 * chain of strings.
 */
export function base32(bytes: Uint8Array, digits: string, leading = 0): string {
  const length = Math.ceil((bytes.length * 8 + leading) / 5);
  const text = Buffer.alloc(length);
  let bits = 0;
  let count = leading;
  let at = 0;
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xfff;
    count += 8;
    while (count >= 5) {
      count -= 5;
      text[at] = digits.charCodeAt((bits >>> count) & 31);
      at += 1;
    }
  }
  if (count > 0) text[at] = digits.charCodeAt((bits << (5 - count)) & 31);
  return text.toString('latin1');
}
