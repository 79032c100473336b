import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** Looks for secrets in bytes: as they are, and in each form into which programs put texts. */

interface Form {
  readonly name: string;
  readonly bytes: Buffer;
}

export function formsOf(secret: string): readonly Form[] {
  const bytes = Buffer.from(secret);
  const escaped = JSON.stringify(secret).slice(1, -1);
  const texts: readonly (readonly [string, string])[] = [
    ['plain', secret],
    ['lower case', secret.toLowerCase()],
    ['JSON', escaped],
    ['JSON in JSON', JSON.stringify(escaped).slice(1, -1)],
    ['JSON by code points', codePoints(secret)],
    ['percent', encodeURIComponent(secret)],
    ['percent of every byte', [...bytes].map((byte) => `%${hex(byte)}`).join('')],
    ['form', new URLSearchParams({ k: secret }).toString().slice(2)],
    ['hex', bytes.toString('hex')],
    ['HEX', bytes.toString('hex').toUpperCase()],
    ...[0, 1, 2].flatMap((shift): [string, string][] => [
      [`base64 ${shift}`, base64At(bytes, shift)],
      [`base64url ${shift}`, base64At(bytes, shift).replaceAll('+', '-').replaceAll('/', '_')],
    ]),
  ];
  return [
    ...texts.map(([name, text]) => ({ name, bytes: Buffer.from(text) })),
    { name: 'UTF-16', bytes: Buffer.from(secret, 'utf16le') },
  ];
}

/** The characters of base64 that only these bytes decide, wherever they stand in a longer text. */
function base64At(bytes: Buffer, shift: number): string {
  const text = Buffer.concat([Buffer.alloc(shift), bytes])
    .toString('base64')
    .replaceAll('=', '');
  const from = Math.ceil((shift * 8) / 6);
  const to = Math.floor(((shift + bytes.length) * 8) / 6);
  return text.slice(from, to);
}

function codePoints(text: string): string {
  return text.replaceAll(/./gs, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0').toUpperCase();
}

/** Secrets by the name of what they are. */
export type Planted = Readonly<Record<string, string>>;

/** `name of the secret, its form`, for each that is in the bytes. */
export function secretsIn(bytes: Buffer, planted: Planted): readonly string[] {
  return Object.entries(planted).flatMap(([name, secret]) =>
    formsOf(secret)
      .filter((form) => bytes.includes(form.bytes))
      .map((form) => `${name}, ${form.name}`),
  );
}

/** The same for every file below a folder, packed ones too. */
export function secretsBelow(folder: string, planted: Planted): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile())
    .flatMap((file) => {
      const path = join(file.parentPath, file.name);
      const bytes = readUnlessGone(path);
      const isPacked = file.name.endsWith('.gz') && bytes.length > 0;
      const whole = isPacked ? gunzipSync(bytes) : bytes;
      return secretsIn(whole, planted).map((found) => `${path}: ${found}`);
    });
}

/** A database that runs removes files of its own. */
function readUnlessGone(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Error && Reflect.get(error, 'code') === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}
