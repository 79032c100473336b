import { Buffer } from 'node:buffer';
import { createHash, hash } from 'node:crypto';

/**
 * All digests and references of what is remembered. A text has one digest wherever it is kept, and a
 * reference (`m_…`) that names it in a shell, a stub and a block. The memory API names a record, which
 * may hold several texts, by the digest of its canonical bytes. Both are in stored rows, in files and
 * in conversations of years ago, so neither may ever be computed in another way.
 */

export type TextRole = 'user' | 'assistant' | 'tool';

/** An output belongs to its call, and has no place of its own in a conversation. */
export const OUTPUT_PLACE = { role: 'tool', fingerprint: '', exchange: 0 } as const;

/** Names a text: base64url SHA-256 over the role, a line feed and the text. */
export function textDigest(role: TextRole, said: string | Uint8Array): string {
  // One call for a text: it takes a third of the time of a hash that is updated.
  if (typeof said === 'string') return hash('sha256', `${role}\n${said}`, 'base64url');
  return createHash('sha256').update(`${role}\n`).update(said).digest('base64url');
}

/** 80 bits: two records of one store share a reference with a chance of 1 in 10^12 at 10^6 records. */
const REFERENCE_BYTES = 10;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
/** A sha256 in base64url without padding. */
const DIGEST = /^[A-Za-z0-9_-]{43}$/;

/** Every reference in a text. Stateless with `match` and `matchAll` only. */
export const REFERENCES = /\bm_[a-z2-7]{16}\b/g;

export function isDigest(value: string): boolean {
  return DIGEST.test(value);
}

/** `m_` and 16 characters of lower-case base32, from the digest's first 10 bytes. */
export function referenceOf(digest: string): string {
  return `m_${base32Of(digest)}`;
}

/**
 * The beginning of a reference, used in its place where every token counts. It has 40 bits, so two
 * records of one store share it with a chance of 1 in 10^6 at 1,000 records. A short one that
 * several records share finds none.
 */
export function shortReference(reference: string): string {
  return reference.slice(0, SHORT_CHARS);
}

/** Whether a text is the beginning of a reference that is long enough to look for. */
export function isShortReference(text: string): boolean {
  return SHORT.test(text);
}

/** A whole reference that the memory API knows: of a text, or one of its own. */
export function isReference(text: string): boolean {
  return REFERENCE.test(text);
}

const REFERENCE = /^(?:m|ex|to|nt)_[a-z2-7]{16}$/;

/** A whole reference, or the beginning of one. */
export function isReferenceStart(text: string): boolean {
  return WHOLE.test(text) || SHORT.test(text);
}

/** `m_` and eight characters. */
const SHORT_CHARS = 10;
/** A person types four of them; fewer are more likely a slip than a choice. */
const SHORT = /^m_[a-z2-7]{4,15}$/;
const WHOLE = /^m_[a-z2-7]{16}$/;

/**
 * A text of up to so many tokens comes back whole by its reference: half of what a left-out output of a real
 * session is, and room for the median function.
 */
export const EXCERPT_TOKENS_MAX = 1_500;

/** The first 80 bits of a base64url digest. */
function base32Of(digest: string): string {
  return base32(Buffer.from(digest, 'base64url').subarray(0, REFERENCE_BYTES), ALPHABET);
}

const DIGEST_START = 'sha256:';

/** `sha256:` and base64url of the SHA-256 over a record's canonical bytes. */
export function contentDigest(bytes: Uint8Array): string {
  return DIGEST_START + createHash('sha256').update(bytes).digest('base64url');
}

/** The kinds of records in the memory API. */
type ContentKind = 'exchange' | 'tool_output' | 'note';

const REFERENCE_STARTS: Readonly<Record<ContentKind, string>> = {
  exchange: 'ex_',
  tool_output: 'to_',
  note: 'nt_',
};

/** The record's kind and the first 80 bits of its digest, in lower-case base32. */
export function contentReference(kind: ContentKind, digest: string): string {
  return REFERENCE_STARTS[kind] + base32Of(digest.slice(DIGEST_START.length));
}

/** Digits of the longest text that is usual; a longer one gets a buffer of its own. */
const SCRATCH = Buffer.alloc(64);

/**
 * Five bits a digit, the highest first, behind `leading` zero bits. The last digit is filled with zeros
 * where bits are missing. Digits are written into one buffer: a text that grows digit by digit is a chain of
 * 26 strings, which the next to read it has to join.
 */
export function base32(bytes: Uint8Array, digits: string, leading = 0): string {
  const length = Math.ceil((bytes.length * 8 + leading) / 5);
  const text = length <= SCRATCH.length ? SCRATCH : Buffer.alloc(length);
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
  return text.toString('latin1', 0, length);
}
