import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ProxyError } from '../../src/core/errors.ts';
import { readZstdFrames } from '../../src/core/encoding/zstd-frame.ts';
import {
  bomb,
  CODEX_HEADER,
  frame,
  rawBlock,
  repeatedBlock,
  sizedHeader,
} from '../support/zstd-frames.ts';

const MAX = 64 << 20;
const hello = Buffer.from('{"a":1}');
const whole = frame({ header: CODEX_HEADER, blocks: [rawBlock(hello, true)] });

function refusal(body: Uint8Array, max = MAX): string {
  try {
    readZstdFrames(body, max);
    return 'accepted';
  } catch (error) {
    return error instanceof ProxyError ? error.code : String(error);
  }
}

test('R11: knows where a frame and its checksum end, and what it declares', () => {
  const checked = frame({
    header: [0x24, hello.length],
    blocks: [rawBlock(hello, true)],
    checksum: 0xdeadbeef,
  });
  const [first, second] = readZstdFrames(Buffer.concat([checked, whole]), MAX);
  expect(first).toMatchObject({ start: 0, end: checked.length });
  expect(first?.contentSize).toBe(hello.length);
  expect(second).toMatchObject({ start: checked.length, end: checked.length + whole.length });
  expect(second?.contentSize).toBeUndefined();
});

test('R11: skippable frames are skipped, but a body of nothing else is unreadable', () => {
  const skippable = Buffer.from('5a2a4d1803000000aabbcc', 'hex');
  expect(refusal(Buffer.concat([skippable, whole, skippable]))).toBe('accepted');
  expect(refusal(skippable)).toBe('BODY_UNREADABLE');
  expect(refusal(skippable.subarray(0, -1))).toBe('BODY_UNREADABLE');
});

test('R11: a frame cut off at any byte is unreadable', () => {
  const checked = frame({
    header: CODEX_HEADER.with(0, 0x04),
    blocks: [rawBlock(hello, false), repeatedBlock(9, true)],
    checksum: 1,
  });
  for (let end = 0; end < checked.length; end += 1) {
    expect(refusal(checked.subarray(0, end))).toBe('BODY_UNREADABLE');
  }
});

test('R11: anything after the last frame is unreadable', () => {
  for (const extra of ['x', '\0', '{"a":1}']) {
    expect(refusal(Buffer.concat([whole, Buffer.from(extra)]))).toBe('BODY_UNREADABLE');
  }
});

test('R11: a dictionary, a reserved bit and an unknown block are unreadable; dictionary 0 is none', () => {
  const blocks = [rawBlock(hello, true)];
  expect(refusal(frame({ header: [0x01, 0x58, 7], blocks }))).toBe('BODY_UNREADABLE');
  expect(refusal(frame({ header: [0x03, 0x58, 0, 0, 1, 0], blocks }))).toBe('BODY_UNREADABLE');
  expect(refusal(frame({ header: [0x01, 0x58, 0], blocks }))).toBe('accepted');
  expect(refusal(frame({ header: [0x08, 0x58], blocks }))).toBe('BODY_UNREADABLE');
  const reserved = frame({ header: CODEX_HEADER, blocks: [Buffer.from([0x07, 0, 0])] });
  expect(refusal(reserved)).toBe('BODY_UNREADABLE');
});

test('R11: a window of 8 MiB passes, the next larger one does not', () => {
  const blocks = [rawBlock(hello, true)];
  expect(refusal(frame({ header: [0x00, 13 << 3], blocks }))).toBe('accepted');
  expect(refusal(frame({ header: [0x00, (13 << 3) + 1], blocks }))).toBe('BODY_TOO_LARGE');
  expect(refusal(frame({ header: [0x00, 31 << 3], blocks }))).toBe('BODY_TOO_LARGE');
});

test('R11: 17 bytes that declare a gigabyte are too large before anything is decoded', () => {
  const blocks = [rawBlock(Buffer.alloc(0), true)];
  expect(refusal(frame({ header: sizedHeader(1 << 30), blocks }))).toBe('BODY_TOO_LARGE');
  expect(refusal(frame({ header: sizedHeader(2 ** 62), blocks }))).toBe('BODY_TOO_LARGE');
  // The same claim beside a small window.
  const header = [0xc0, 0x58, ...sizedHeader(1 << 30).slice(1)];
  expect(refusal(frame({ header, blocks }))).toBe('BODY_TOO_LARGE');
});

test('R11: a body that states more than the limit block by block is too large', () => {
  expect(refusal(bomb(512))).toBe('accepted');
  expect(refusal(bomb(513))).toBe('BODY_TOO_LARGE');
  expect(refusal(bomb(32_768))).toBe('BODY_TOO_LARGE');
  expect(refusal(Buffer.concat([bomb(400), bomb(400)]))).toBe('BODY_TOO_LARGE');
});

test('R11: so many frames or blocks that only reading them takes long are too large', () => {
  const empty = frame({ header: [0x20, 0], blocks: [rawBlock(Buffer.alloc(0), true)] });
  expect(refusal(Buffer.concat(Array.from({ length: 1_000 }, () => empty)))).toBe('accepted');
  expect(refusal(Buffer.alloc(empty.length * 200_000, empty))).toBe('BODY_TOO_LARGE');
  const blocks = [Buffer.alloc(3 * 300_000), rawBlock(hello, true)];
  expect(refusal(frame({ header: CODEX_HEADER, blocks }))).toBe('BODY_TOO_LARGE');
});

test('R11: a block longer than the window allows is unreadable', () => {
  const header = [0x00, 0x00]; // 1 KiB
  expect(refusal(frame({ header, blocks: [repeatedBlock(1_024, true)] }))).toBe('accepted');
  expect(refusal(frame({ header, blocks: [repeatedBlock(1_025, true)] }))).toBe('BODY_UNREADABLE');
});

test('R11: whatever the bytes, the answer is yes or one of two codes', () => {
  const start = fc.constantFrom([], [...whole.subarray(0, 6)], [...whole.subarray(0, 9)]);
  fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 200 }), (head, rest) => {
      const verdict = refusal(Uint8Array.from([...head, ...rest]));
      expect(['accepted', 'BODY_UNREADABLE', 'BODY_TOO_LARGE']).toContain(verdict);
    }),
    { numRuns: 2_000 },
  );
});
