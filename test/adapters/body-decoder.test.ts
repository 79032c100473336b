import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as zlib from 'node:zlib';
import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { createBodyDecoder, hasNativeZstd } from '../../src/adapters/encoding/body-decoder.ts';
import { ProxyError } from '../../src/core/errors.ts';
import {
  bomb,
  CODEX_HEADER,
  compressedBlock,
  frame,
  rawBlock,
  repeatedBlock,
  sizedHeader,
} from '../support/zstd-frames.ts';

const limits = { decodedBytesMax: 64 << 20, deadlineMs: 10_000 };
const folder = join(import.meta.dirname, '../recordings/codex-0.169.0');
const recorded = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.body.zst'))
  .map((path) => ({
    path,
    encoded: readFileSync(join(folder, path)),
    body: JSON.stringify(
      JSON.parse(readFileSync(join(folder, path.replace('.body.zst', '.json')), 'utf8')).request
        .body,
    ),
  }));

// Node 22.15 and later have both.
const zstdDecoders = [
  { name: 'zstd in the worker', useNativeZstd: false },
  { name: 'zstd through node:zlib', useNativeZstd: true },
].slice(0, hasNativeZstd ? 2 : 1);

describe.each(zstdDecoders)('$name', ({ useNativeZstd }) => {
  const decoder = createBodyDecoder({ useNativeZstd });
  afterAll(() => decoder.close());

  async function verdict(encoded: Buffer, encoding = 'zstd', own = {}): Promise<string> {
    try {
      const decoded = await decoder.decode(encoded, encoding, { ...limits, ...own });
      return `${decoded.length} bytes`;
    } catch (error) {
      return error instanceof ProxyError ? error.code : String(error);
    }
  }

  test('R11: decodes the frames that Codex sent to the bodies beside them', async () => {
    expect(recorded.length).toBe(5);
    for (const { path, encoded, body } of recorded) {
      const decoded = await decoder.decode(encoded, 'zstd', limits);
      expect(decoded.toString(), path).toBe(body);
    }
  });

  test('R11: decodes several frames, skippable ones between them, into one body', async () => {
    const [one, two] = recorded;
    const skippable = Buffer.from('502a4d180100000000', 'hex');
    const encoded = Buffer.concat([
      one?.encoded ?? Buffer.alloc(0),
      skippable,
      two?.encoded ?? Buffer.alloc(0),
    ]);
    const decoded = await decoder.decode(encoded, 'zstd', limits);
    expect(decoded.toString()).toBe(`${one?.body}${two?.body}`);
  });

  // fzstd is less strict, and refuses this one.
  test.runIf(useNativeZstd)('R11: two-byte "no sequences" is as good as one byte', async () => {
    const literals = Buffer.from([5 << 3, ...Buffer.from('hello'), 0x80, 0]);
    const blocks = [compressedBlock(literals, false), rawBlock(Buffer.from('!'), true)];
    const decoded = await decoder.decode(frame({ header: CODEX_HEADER, blocks }), 'zstd', limits);
    expect(decoded.toString()).toBe('hello!');
  });

  const content = Buffer.from('{"model":"m"}');
  const checked = (checksum: number): Buffer =>
    frame({ header: CODEX_HEADER.with(0, 0x04), blocks: [rawBlock(content, true)], checksum });
  const CHECKSUM = 0x647c8b27;

  test('R11: a right checksum passes', async () => {
    expect(await verdict(checked(CHECKSUM))).toBe(`${content.length} bytes`);
  });

  test.runIf(useNativeZstd)('R11: a wrong checksum is unreadable', async () => {
    expect(await verdict(checked(CHECKSUM ^ 1))).toBe('BODY_UNREADABLE');
  });

  test('R11: a frame that is not as long as it says is unreadable', async () => {
    const sized = (size: number): Buffer =>
      frame({ header: sizedHeader(size), blocks: [rawBlock(content, true)] });
    expect(await verdict(sized(content.length))).toBe(`${content.length} bytes`);
    expect(await verdict(sized(content.length + 1))).toBe('BODY_UNREADABLE');
    expect(await verdict(sized(content.length - 1))).toBe('BODY_UNREADABLE');
  });

  test.runIf(useNativeZstd)(
    'R11: refuses the frames that the reference decoder was once wrong about',
    async () => {
      // zstd's own golden-decompression-errors: an offset of zero, Huffman weights that are cut
      // off, bytes after "no sequences".
      const golden = [
        '28b52ffd0000450000080002002f430bae',
        '28b52ffd000055000072800104207e1f02aa00',
        '28b52ffd00009500006848656c6c6f20576f726c64210a80000000',
      ];
      for (const hex of golden) {
        expect(await verdict(Buffer.from(hex, 'hex')), hex).toBe('BODY_UNREADABLE');
      }
    },
  );

  test('R11: a body of exactly the limit passes, one byte more does not', async () => {
    const size = 3 * (128 << 10);
    expect(await verdict(bomb(3), 'zstd', { decodedBytesMax: size })).toBe(`${size} bytes`);
    expect(await verdict(bomb(3), 'zstd', { decodedBytesMax: size - 1 })).toBe('BODY_TOO_LARGE');
  });

  test('R11: a bomb made of matches is refused at the limit', async () => {
    // One literal, then one match of 128 KiB - 1 over it: some ten bytes a block.
    const block = [
      1 << 3, // Raw literals, one byte.
      0x20,
      1, // One sequence, its codes each constant:
      0b01_01_01_00,
      1, // one literal,
      0, // offset value 1: with a literal before it, the newest offset, which is 1,
      52, // and a match of 65,539 and 16 bits more.
    ];
    const bits = 128 * 1_024 - 1 - 65_539;
    const sequence = [bits & 0xff, bits >> 8, 1];
    const match = Buffer.from([...block, ...sequence]);
    const blocks = (count: number): Buffer[] => [
      ...Array.from({ length: count - 1 }, () => compressedBlock(match, false)),
      compressedBlock(match, true),
    ];
    const small = frame({ header: CODEX_HEADER, blocks: blocks(2) });
    expect(await verdict(small)).toBe(`${256 << 10} bytes`);
    const large = frame({ header: CODEX_HEADER, blocks: blocks(10_000) });
    expect(large.length).toBeLessThan(140_000);
    expect(await verdict(large)).toBe('BODY_TOO_LARGE');
  });

  test('R11: damaged frames are decoded or refused, and the decoder goes on', async () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 255 })), {
      minLength: 1,
      maxLength: 3,
    });
    const codes = /^(\d+ bytes|BODY_UNREADABLE|BODY_TOO_LARGE)$/;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...recorded), damage, async ({ encoded }, changes) => {
        const damaged = Buffer.from(encoded);
        for (const [at, by] of changes) {
          const place = at % damaged.length;
          damaged[place] = (damaged[place] ?? 0) ^ by;
        }
        expect(await verdict(damaged)).toMatch(codes);
      }),
      { numRuns: 300 },
    );
    const [first] = recorded;
    expect(await verdict(first?.encoded ?? Buffer.alloc(0))).toBe(`${first?.body.length} bytes`);
  });

  test('R11: a frame cut off anywhere is unreadable', async () => {
    const { encoded } = recorded[1] ?? { encoded: Buffer.alloc(0) };
    for (let end = 0; end < encoded.length; end += 97) {
      expect(await verdict(encoded.subarray(0, end))).toBe('BODY_UNREADABLE');
    }
  });
});

describe('the worker', () => {
  const decoder = createBodyDecoder({ useNativeZstd: false });
  afterAll(() => decoder.close());

  test('R11: is ended when a body takes too long, and the next body gets another one', async () => {
    const slow = decoder.decode(bomb(512), 'zstd', { ...limits, deadlineMs: 1 });
    await expect(slow).rejects.toMatchObject({ code: 'BODY_TOO_LARGE' });
    const [first] = recorded;
    const decoded = await decoder.decode(first?.encoded ?? Buffer.alloc(0), 'zstd', limits);
    expect(decoded.toString()).toBe(first?.body);
  });

  test('R38: is ended when nobody waits for its body any more', async () => {
    const client = new AbortController();
    const decoding = decoder.decode(bomb(512), 'zstd', { ...limits, signal: client.signal });
    const waiting = decoder.decode(bomb(512), 'zstd', { ...limits, signal: client.signal });
    setTimeout(() => client.abort(new Error('gone')), 5);
    const startedAt = performance.now();
    await expectGone(decoding);
    await expectGone(waiting);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect((await decoder.decode(bomb(1), 'zstd', limits)).length).toBe(128 << 10);
  });

  test('R38: is not given a body whose client went while it started', async () => {
    const starting = createBodyDecoder({ useNativeZstd: false });
    const client = new AbortController();
    const decoding = starting.decode(bomb(512), 'zstd', { ...limits, signal: client.signal });
    client.abort(new Error('gone'));
    await expectGone(decoding);
    const next = new AbortController();
    await starting.close();
    const later = starting.decode(bomb(512), 'zstd', { ...limits, signal: next.signal });
    setImmediate(() => next.abort(new Error('gone')));
    await expectGone(later);
    await starting.close();
  });

  test('R11: takes many bodies at once and answers each with its own', async () => {
    const all = await Promise.all(
      Array.from({ length: 64 }, (_, index) => {
        const blocks = [repeatedBlock(index + 1, true)];
        return decoder.decode(frame({ header: CODEX_HEADER, blocks }), 'zstd', limits);
      }),
    );
    expect(all.map(({ length }) => length)).toEqual(all.map((_, index) => index + 1));
  });

  test('leaves the bytes that it was given to their owner', async () => {
    const encoded = Buffer.from(recorded[0]?.encoded ?? []);
    const copy = Buffer.from(encoded);
    await decoder.decode(encoded, 'zstd', limits);
    expect(encoded.equals(copy)).toBe(true);
  });

  test('works again after it was closed', async () => {
    await decoder.close();
    const decoded = await decoder.decode(bomb(1), 'zstd', limits);
    expect(decoded.length).toBe(128 << 10);
  });
});

describe('the other encodings', () => {
  const decoder = createBodyDecoder();
  afterAll(() => decoder.close());
  const body = Buffer.from(JSON.stringify({ text: 'ä'.repeat(100_000), more: [1.0, 2] }));
  const encodings = [
    ['gzip', zlib.gzipSync(body)],
    ['deflate', zlib.deflateSync(body)],
    ['br', zlib.brotliCompressSync(body)],
  ] as const;

  test('R10: identity, gzip, deflate and br give the body back', async () => {
    expect(await decoder.decode(body, 'identity', limits)).toBe(body);
    for (const [encoding, encoded] of encodings) {
      const decoded = await decoder.decode(encoded, encoding, limits);
      expect(decoded.equals(body), encoding).toBe(true);
    }
  });

  test.each(encodings)('R10: %s over the limit is too large', async (encoding, encoded) => {
    const exact = { ...limits, decodedBytesMax: body.length };
    expect((await decoder.decode(encoded, encoding, exact)).length).toBe(body.length);
    const less = { ...limits, decodedBytesMax: body.length - 1 };
    await expect(decoder.decode(encoded, encoding, less)).rejects.toMatchObject({
      code: 'BODY_TOO_LARGE',
    });
  });

  test.each(encodings)(
    'R10: %s cut off or with more after it is unreadable',
    async (name, encoded) => {
      const broken = [
        encoded.subarray(0, -1),
        encoded.subarray(0, 10),
        Buffer.alloc(0),
        Buffer.concat([encoded, Buffer.from('x')]),
        Buffer.from('not compressed at all'),
      ];
      for (const bytes of broken) {
        await expect(decoder.decode(bytes, name, limits)).rejects.toMatchObject({
          code: 'BODY_UNREADABLE',
        });
      }
    },
  );

  test.each(['gzip', 'deflate', 'br'])(
    'R38: %s stops when nobody waits for it any more',
    async (encoding) => {
      const large = Buffer.alloc(64 << 20, 'so many words');
      const encode = { gzip: zlib.gzipSync, deflate: zlib.deflateSync, br: fastBrotli }[encoding];
      const encoded = encode?.(large) ?? Buffer.alloc(0);
      const client = new AbortController();
      const whole = await cpuOf(() => decoder.decode(encoded, encoding, limits));
      const stop = (): Promise<number> =>
        cpuOf(async () => {
          const leaving = new AbortController();
          const { signal } = leaving;
          const decoding = decoder.decode(encoded, encoding, { ...limits, signal });
          leaving.abort(new Error('gone'));
          await expectGone(decoding);
          // Long enough that the rest of the body would have been decoded.
          await new Promise((resolve) => setTimeout(resolve, 300));
        });
      // What is under way is one chunk of 500. Other work of the process counts too, but seldom three times.
      const stopped = Math.min(await stop(), await stop(), await stop());
      expect(stopped).toBeLessThan(whole / 2);
      client.abort(new Error('gone'));
      const already = { ...limits, signal: client.signal };
      await expectGone(decoder.decode(encoded, encoding, already));
    },
  );

  test('R10: identity over the limit is too large, an unknown encoding unsupported', async () => {
    const small = { ...limits, decodedBytesMax: body.length - 1 };
    await expect(decoder.decode(body, 'identity', small)).rejects.toMatchObject({
      code: 'BODY_TOO_LARGE',
    });
    for (const encoding of ['compress', 'gzip, br', 'GZIP', '']) {
      await expect(decoder.decode(body, encoding, limits)).rejects.toMatchObject({
        code: 'ENCODING_UNSUPPORTED',
      });
    }
  });
});

/** Without the body: where it is decoded after all, printing its 64 MiB would take minutes and gigabytes. */
async function expectGone(decoding: Promise<Buffer>): Promise<void> {
  await expect(decoding.then(({ length }) => length)).rejects.toThrow('gone');
}

function fastBrotli(bytes: Buffer): Buffer {
  return zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } });
}

/** CPU time of all threads, in microseconds. */
async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
