/**
 * Reads fields out of parsed JSON that a client, a provider or a person wrote. Nothing here trusts a
 * type: a field of an unexpected type reads as if it were absent, so that a new client never breaks us.
 */

/** Any JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

const NO_FIELDS: Fields = Object.freeze({});

export function asRecord(value: unknown): Fields {
  return isRecord(value) ? value : NO_FIELDS;
}

export function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Undefined for what is no text, where an empty text says something else. */
export function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** A token count: anything but a whole number from 0 up reads as `fallback`. */
export function asCount(value: unknown, fallback = 0): number {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : fallback;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Paragraphs of visible text as one text: blank ones gone, a blank line between the others. */
export function joinParagraphs(paragraphs: readonly string[]): string {
  const trimmed = paragraphs.map((paragraph) => paragraph.trim());
  return trimmed.filter((paragraph) => paragraph !== '').join('\n\n');
}

/**
 * `text.startsWith(part, at)`, which V8 compares character by character: for the long parts here
 * cutting and comparing is five times as fast (measured on Node 20).
 */
export function hasAt(text: string, part: string, at: number): boolean {
  return text.slice(at, at + part.length) === part;
}
