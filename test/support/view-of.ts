import { createHash } from 'node:crypto';
import { listKey, type Dialect } from '../../src/core/dialect.ts';
import { readItem } from '../../src/core/dialects/items.ts';
import type { Item, RequestView } from '../../src/core/view.ts';

/** A view over a body that a test wrote as an object. Token counts are not estimates, only sizes. */
export function viewOf(dialect: Dialect, body: Record<string, unknown>): RequestView {
  const key = listKey(dialect);
  const list = body[key];
  const text = JSON.stringify(body);
  const bytes = Buffer.from(text);
  const isTextInput = typeof list === 'string';
  const values = isTextInput ? [list] : Array.isArray(list) ? (list as unknown[]) : [];
  const listText = JSON.stringify(list ?? []);
  const start = bytes.indexOf(`"${key}":${listText}`) + key.length + 3;
  const span = { start, end: start + Buffer.byteLength(listText) };
  const items = itemsOf(dialect, values, isTextInput ? span.start : span.start + 1);
  const shell = { value: { ...body, [key]: isTextInput ? '' : [] }, tokens: 0 };
  return { dialect, bytes, list: span, isTextInput, items, shell, tokens: bytes.length };
}

function itemsOf(dialect: Dialect, values: readonly unknown[], from: number): Item[] {
  let start = from;
  let fingerprint = '';
  return values.map((value) => {
    const text = JSON.stringify(value);
    const end = start + Buffer.byteLength(text);
    const digest = sha256(text);
    fingerprint = sha256(fingerprint + digest);
    const item = {
      ...readItem(dialect, value),
      start,
      end,
      digest,
      fingerprint,
      tokens: end - start,
    };
    start = end + 1;
    return item;
  });
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
