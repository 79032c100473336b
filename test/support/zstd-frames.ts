/** zstd frames written by hand: what no encoder writes, but what anyone may send. */

export interface FrameParts {
  /** Frame header descriptor and what follows it, the magic number not included. */
  readonly header: readonly number[];
  readonly blocks: readonly Buffer[];
  readonly checksum?: number;
}

/** Descriptor 0, window descriptor 0x58: 2 MiB, as Codex sends it. */
export const CODEX_HEADER = [0x00, 0x58];

/** A single segment that says how long its content is. */
export function sizedHeader(contentSize: number): readonly number[] {
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(contentSize));
  return [0xe0, ...size];
}

export function frame({ header, blocks, checksum }: FrameParts): Buffer {
  const end = Buffer.alloc(checksum === undefined ? 0 : 4);
  if (checksum !== undefined) end.writeUInt32LE(checksum);
  return Buffer.concat([
    Buffer.from([0x28, 0xb5, 0x2f, 0xfd]),
    Buffer.from(header),
    ...blocks,
    end,
  ]);
}

export function rawBlock(content: Buffer, isLast: boolean): Buffer {
  return Buffer.concat([blockHeader(0, content.length, isLast), content]);
}

/** `size` times the same byte, in four bytes. */
export function repeatedBlock(size: number, isLast: boolean): Buffer {
  return Buffer.concat([blockHeader(1, size, isLast), Buffer.from(' ')]);
}

export function compressedBlock(content: Buffer, isLast: boolean): Buffer {
  return Buffer.concat([blockHeader(2, content.length, isLast), content]);
}

function blockHeader(kind: number, size: number, isLast: boolean): Buffer {
  const header = Buffer.alloc(3);
  header.writeUIntLE(size * 8 + kind * 2 + (isLast ? 1 : 0), 0, 3);
  return header;
}

/** Decodes to `blocks` times 128 KiB; each block takes four bytes. */
export function bomb(blocks: number): Buffer {
  const size = 128 << 10;
  const middle = repeatedBlock(size, false);
  return frame({
    header: CODEX_HEADER,
    blocks: [...Array.from({ length: blocks - 1 }, () => middle), repeatedBlock(size, true)],
  });
}
