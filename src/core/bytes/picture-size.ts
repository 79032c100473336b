/** Reads the size of a picture from the first bytes of its file, which may contain anything. */
import { Buffer } from 'node:buffer';

export interface PictureSize {
  /** The width in pixels, at least 1. */
  readonly width: number;
  readonly height: number;
}

// Base64 characters that are decoded. A JPEG states its size after its metadata, which may have 64 kB and a preview
// picture if a camera made it.
const HEAD_CHARS = 256 * 1024;

/**
 * Returns the size in pixels of a picture, whose file is given as base64; undefined if the file is no PNG, JPEG, GIF or
 * WebP, or states no size within HEAD_CHARS.
 */
export function pictureSize(base64: string): PictureSize | undefined {
  const head = Buffer.from(base64.slice(0, HEAD_CHARS), 'base64');
  for (const read of [pngSize, gifSize, webpSize, jpegSize]) {
    const size = read(head);
    if (size !== undefined) return size.width > 0 && size.height > 0 ? size : undefined;
  }
  return undefined;
}

function pngSize(head: Buffer): PictureSize | undefined {
  if (head.length < 24 || head.readUInt32BE(0) !== 0x89504e47) return undefined;
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
}

function gifSize(head: Buffer): PictureSize | undefined {
  if (head.length < 10 || !/^GIF8[79]a$/.test(head.toString('latin1', 0, 6))) return undefined;
  return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
}

function webpSize(head: Buffer): PictureSize | undefined {
  if (head.length < 30 || head.toString('latin1', 8, 12) !== 'WEBP') return undefined;
  switch (head.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
    case 'VP8L': {
      const bits = head.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
  }
  return undefined;
}

/** Returns a JPEG's size, which the segment that begins a frame (the picture) states. */
function jpegSize(head: Buffer): PictureSize | undefined {
  if (head.length < 4 || head.readUInt16BE(0) !== 0xffd8) return undefined;
  let at = 2;
  while (at + 9 <= head.length && head[at] === 0xff) {
    const marker = head[at + 1] ?? 0;
    if (beginsFrame(marker)) {
      return { height: head.readUInt16BE(at + 5), width: head.readUInt16BE(at + 7) };
    }
    // A marker may be preceded by extra 0xff bytes.
    at += marker === 0xff ? 1 : 2 + head.readUInt16BE(at + 2);
  }
  return undefined;
}

/** Says whether a marker begins a frame: SOF0 to SOF15, without the table markers between them. */
function beginsFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}
