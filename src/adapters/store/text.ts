/** Texts as bytes and back, exact for every string that JSON can carry. */

export interface StoredText {
  readonly text: Uint8Array;
  readonly is_utf16: number;
}

export function bytesOf(text: string): StoredText {
  // UTF-8 has no form for half a surrogate pair: such a text, rare and broken, is kept as UTF-16.
  const isUtf16 = /\p{Surrogate}/u.test(text);
  return { text: Buffer.from(text, isUtf16 ? 'utf16le' : 'utf8'), is_utf16: isUtf16 ? 1 : 0 };
}

export function textOf({ text, is_utf16: isUtf16 }: StoredText): string {
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString(
    isUtf16 === 1 ? 'utf16le' : 'utf8',
  );
}
