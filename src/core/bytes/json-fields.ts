/**
 * Reads fields of parsed JSON that a client, a provider or a user wrote. No type is trusted: a field of an
 * unexpected type reads as absent or empty, so that a new client never breaks svc.
 */

export type Fields = Readonly<Record<string, unknown>>;

const NO_FIELDS: Fields = Object.freeze({});

export function asRecord(value: unknown): Fields {
  return isRecord(value) ? value : NO_FIELDS;
}

export function recordOrNone(value: unknown): Fields | undefined {
  return isRecord(value) ? value : undefined;
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

/** Returns the value if it is a string, else undefined. It serves fields in which an empty string has a meaning. */
export function textOrNone(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Returns a count, such as a number of tokens. Anything but a whole number from 0 up reads as `fallback`. */
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

/** Joins the paragraphs that are not blank, with a blank line between two. */
export function joinParagraphs(paragraphs: readonly string[]): string {
  const trimmed = paragraphs.map((paragraph) => paragraph.trim());
  return trimmed.filter((paragraph) => paragraph !== '').join('\n\n');
}
