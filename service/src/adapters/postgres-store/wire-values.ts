import { withoutNul } from '../../../../src/adapters/store/driver.ts';
import type { SqlScalar, SqlValue } from '../../ports/rows.ts';

/** Encodes values for a message to PostgreSQL: bytes and the arrays of newArray() in binary, all others as text. */

export type WireValue = string | Buffer | null;

/**
 * Encodes a value. A list becomes PostgreSQL's text form of an array: `{1,"two",NULL}`. NUL becomes U+FFFD, because
 * PostgreSQL's texts cannot contain NUL.
 */
export function wireValue(value: SqlValue): WireValue {
  if (value === null) return null;
  if (typeof value === 'string') return withoutNul(value);
  if (typeof value === 'number') return String(value);
  return value instanceof Uint8Array ? bufferOf(value) : arrayText(value);
}

type Element = string | number | null | Uint8Array;

function arrayText(elements: readonly Element[]): string {
  return `{${elements.map(elementText).join(',')}}`;
}

function elementText(element: Element): string {
  if (element === null) return 'NULL';
  if (typeof element === 'number') return String(element);
  if (typeof element !== 'string') return `"\\\\x${bufferOf(element).toString('hex')}"`;
  return `"${withoutNul(element).replaceAll(/["\\]/g, '\\$&')}"`;
}

/** Returns a list of values for each member of the rows, for a statement with `unnest`. A missing value is null. */
export function columnsOf<Name extends string>(
  rows: readonly { readonly [Key in Name]?: SqlScalar | undefined }[],
  names: readonly Name[],
): SqlScalar[][] {
  return names.map((name) => rows.map((row) => row[name] ?? null));
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Bytes of an array's head: dimensions, null flag, element type, number of elements, first index. */
export const ARRAY_HEAD = 20;
/** Bytes before each element, which hold its size. */
export const ELEMENT_HEAD = 4;
const TYPES = { bytea: 17, bigint: 20 } as const;

/** Allocates a binary array of `count` elements, which have `bytes` together, and writes its head. */
export function newArray(type: keyof typeof TYPES, count: number, bytes: number): Buffer {
  const array = Buffer.allocUnsafe(ARRAY_HEAD + count * ELEMENT_HEAD + bytes);
  for (const [at, fact] of [1, 0, TYPES[type], count, 1].entries())
    array.writeInt32BE(fact, at * 4);
  return array;
}

/** Encodes an array of byte strings in binary. As text, each byte would be two hexadecimal digits. */
export function bytesArray(elements: readonly Uint8Array[]): Buffer {
  const bytes = elements.reduce((sum, { length }) => sum + length, 0);
  const array = newArray('bytea', elements.length, bytes);
  let at = ARRAY_HEAD;
  for (const element of elements) {
    at = array.writeInt32BE(element.length, at);
    array.set(element, at);
    at += element.length;
  }
  return array;
}
