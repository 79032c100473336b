/** Reads fields of somebody else's JSON without trusting its shape: what is missing is empty. */

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function field(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

export function listField(value: unknown, name: string): readonly unknown[] {
  const list = field(value, name);
  return Array.isArray(list) ? list : [];
}

export function textField(value: unknown, name: string): string {
  const text = field(value, name);
  return typeof text === 'string' ? text : '';
}

/** All text in a content value: a string, a list of parts, or parts within parts. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map(textOf).join('\n');
  if (!isObject(content)) return '';
  return typeof content['text'] === 'string' ? content['text'] : textOf(content['content']);
}

/** A rough token count, four bytes each: only its growth matters to a client. */
export function roughTokens(value: unknown): number {
  return Math.ceil(Buffer.byteLength(JSON.stringify(value)) / 4);
}
