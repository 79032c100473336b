/**
 * The secrets that svc itself was configured with: provider keys, the service key, the local token.
 * They are masked by value, whatever they look like, also in base64 as a login is sent.
 *
 * One set serves the whole process, because everything that it keeps or sends is masked with it:
 * another set would give a text another digest. It only grows: a replaced key stays a secret.
 */

import { decodeEscapes } from './decoded-view.ts';
import type { Stretch } from './secret-rule.ts';

/** Shorter values, and short ones of letters alone ("ollama"), are no keys in a configuration. */
const ANY_CHARS_MIN = 8;
const MIXED_CHARS_MIN = 4;
/** A configuration has a handful; this bounds what a process that reloads for months keeps. */
const SECRETS_MAX = 256;
const BASE64_CHARS_MIN = 8;

const known = new Set<string>();
let needles: readonly string[] = [];

/** From now on these values are masked in every text. */
export function rememberOwnSecrets(secrets: readonly string[]): void {
  const fresh = secrets.filter((secret) => isMaskable(secret) && !known.has(secret));
  if (fresh.length === 0) return;
  for (const secret of fresh) if (known.size < SECRETS_MAX) known.add(secret);
  needles = [...new Set([...known].flatMap(formsOf))];
}

/** The place of one of them in a text without escapes. */
export function findOwnSecrets(view: string): readonly Stretch[] {
  const found: Stretch[] = [];
  for (const needle of needles) {
    for (let at = view.indexOf(needle); at !== -1; at = view.indexOf(needle, at + needle.length)) {
      found.push({ start: at, end: at + needle.length });
    }
  }
  return found;
}

function isMaskable(secret: string): boolean {
  if (secret.length >= ANY_CHARS_MIN) return true;
  return secret.length >= MIXED_CHARS_MIN && !/^[A-Za-z]+$/.test(secret);
}

/** The secret itself, and its base64 forms at any offset in a longer text. */
function formsOf(secret: string): readonly string[] {
  const decoded = decodeEscapes(secret).view;
  const inBase64 = [0, 1, 2].map((offset) => insideBase64(secret, offset));
  const long = inBase64.filter((form) => form.length >= BASE64_CHARS_MIN);
  return [decoded, ...long, ...long.map(toBase64Url)];
}

/** The characters of base64 that depend only on the secret when `offset` bytes precede it. */
function insideBase64(secret: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
  const whole = bytes.toString('base64').replace(/=+$/, '');
  const first = Math.ceil((offset * 8) / 6);
  const last = Math.floor((bytes.length * 8) / 6);
  return whole.slice(first, last);
}

function toBase64Url(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_');
}
