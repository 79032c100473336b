/**
 * Finds the elements of a body's list by reading its bytes, with no help from the product: what the
 * product says about spans must not be judged by its own reader.
 */
export interface BodyList {
  readonly items: readonly Buffer[];
  /** Everything up to the first element. */
  readonly head: Buffer;
  /** Everything up to the end of the last element. */
  readonly prefix: Buffer;
  /** From the end of the last element. */
  readonly tail: Buffer;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENERS = Buffer.from('[{');
const CLOSERS = Buffer.from(']}');

/** `body` is valid JSON without spaces between its tokens, as every client here writes it. */
export function readBodyList(body: Buffer, name: 'messages' | 'input'): BodyList {
  const start = listStart(body, name);
  const items: Buffer[] = [];
  let itemStart = start;
  let depth = 0;
  let at = start;
  for (; depth >= 0; at += 1) {
    const byte = body[at];
    if (byte === undefined) throw new Error(`the list ${name} does not end`);
    if (byte === QUOTE) at = stringEnd(body, at);
    if (OPENERS.includes(byte)) depth += 1;
    if (CLOSERS.includes(byte)) depth -= 1;
    const isItemEnd = (depth === 0 && byte === COMMA) || depth === -1;
    if (!isItemEnd) continue;
    if (at > itemStart) items.push(body.subarray(itemStart, at));
    itemStart = at + 1;
  }
  const end = at - 1;
  return {
    items,
    head: body.subarray(0, start),
    prefix: body.subarray(0, end),
    tail: body.subarray(end),
  };
}

/** The offset behind the list's opening bracket; the key must stand on the body's top level. */
function listStart(body: Buffer, name: string): number {
  const key = Buffer.from(`"${name}"`);
  let depth = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] ?? 0;
    const isKey = byte === QUOTE && depth === 1 && body.subarray(at, at + key.length).equals(key);
    if (isKey && body.toString('latin1', at + key.length, at + key.length + 2) === ':[') {
      return at + key.length + 2;
    }
    if (byte === QUOTE) at = stringEnd(body, at);
    if (OPENERS.includes(byte)) depth += 1;
    if (CLOSERS.includes(byte)) depth -= 1;
  }
  throw new Error(`the body has no list ${name}`);
}

/** The offset of the closing quote. */
function stringEnd(body: Buffer, start: number): number {
  let at = start + 1;
  while (body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
  return at;
}
