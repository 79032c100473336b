import { deflateSync } from 'node:zlib';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { pictureSize } from '../../src/core/bytes/picture-size.ts';
import { estimateTokens } from '../../src/core/bytes/tokens.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { viewRequest } from '../support/view-of.ts';

function png(width: number, height: number, bytes = 60_000): string {
  const head = Buffer.alloc(33);
  head.write('\u0089PNG\r\n\u001a\n', 'latin1');
  head.write('IHDR', 12, 'latin1');
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  const noise = Buffer.from(Array.from({ length: bytes }, (_, at) => (at * 7919 + at * at) % 251));
  return Buffer.concat([head, deflateSync(noise, { level: 0 })]).toString('base64');
}

function jpeg(width: number, height: number): string {
  const frame = Buffer.from([0xff, 0xc2, 0, 17, 8, 0, 0, 0, 0, 3]);
  frame.writeUInt16BE(height, 5);
  frame.writeUInt16BE(width, 7);
  const metadata = Buffer.alloc(60_002, 7);
  metadata.writeUInt16BE(0xffe1, 0);
  metadata.writeUInt16BE(60_000, 2);
  const start = Buffer.from([0xff, 0xd8, 0xff]);
  return Buffer.concat([start.subarray(0, 2), metadata, frame, Buffer.alloc(40)]).toString(
    'base64',
  );
}

function gif(width: number, height: number): string {
  const head = Buffer.from('GIF89a0000 and more of it, as long as it takes', 'latin1');
  head.writeUInt16LE(width, 6);
  head.writeUInt16LE(height, 8);
  return head.toString('base64');
}

function webp(kind: string, width: number, height: number): string {
  const head = Buffer.alloc(40);
  head.write(`RIFF0000WEBP${kind}`, 'latin1');
  if (kind === 'VP8 ') head.writeUInt16LE(width, 26);
  if (kind === 'VP8 ') head.writeUInt16LE(height, 28);
  if (kind === 'VP8L') head.writeUInt32LE((width - 1) | ((height - 1) << 14), 21);
  if (kind === 'VP8X') head.writeUIntLE(width - 1, 24, 3);
  if (kind === 'VP8X') head.writeUIntLE(height - 1, 27, 3);
  return head.toString('base64');
}

test.each([
  ['PNG', png(1_280, 800)],
  ['JPEG behind 60 kB of metadata', jpeg(1_280, 800)],
  ['GIF', gif(1_280, 800)],
  ['WebP, lossy', webp('VP8 ', 1_280, 800)],
  ['WebP, lossless', webp('VP8L', 1_280, 800)],
  ['WebP, extended', webp('VP8X', 1_280, 800)],
])('the size of a picture is read from its first bytes: %s', (_, base64) => {
  expect(pictureSize(base64)).toEqual({ width: 1_280, height: 800 });
});

test('whatever stands in a file, reading its size ends and never throws', () => {
  const starts = [png(1, 1, 0), jpeg(1, 1), gif(1, 1), webp('VP8X', 1, 1)];
  const files = fc
    .tuple(fc.constantFrom('', ...starts), fc.nat(60), fc.uint8Array({ maxLength: 200 }))
    .map(([start, cut, rest]) => {
      return Buffer.concat([Buffer.from(start, 'base64').subarray(0, cut), rest]).toString(
        'base64',
      );
    });
  fc.assert(
    fc.property(files, (base64) => {
      const size = pictureSize(base64);
      expect(size === undefined || (size.width > 0 && size.height > 0)).toBe(true);
    }),
  );
});

const SCREENSHOT = png(1_280, 800, 140_000);
const URL = `data:image/png;base64,${SCREENSHOT}`;
const PDF = Buffer.alloc(300_000, 'a page of it ').toString('base64');

/** Estimated tokens of a body with this item, beyond those of its other bytes. */
function tokensOf(dialect: Dialect, item: unknown, { escapes = false } = {}): number {
  const key = dialect === 'openai_responses' ? 'input' : 'messages';
  const json = JSON.stringify({ model: 'm', [key]: [item] });
  const body = Buffer.from(escapes ? json.replaceAll('/', String.raw`\/`) : json);
  const rest = json.replaceAll(SCREENSHOT, '').replaceAll(PDF, '');
  const view = viewRequest(body, dialect);
  return (view?.tokens ?? 0) - estimateTokens(Buffer.from(rest));
}

const SOURCE = { type: 'base64', media_type: 'image/png', data: SCREENSHOT };
const ANTHROPIC = Math.ceil((1_280 * 800) / 750);
const TILES = 85 + 170 * 3 * 2;

test.each<[string, Dialect, unknown, number]>([
  [
    'Anthropic, said by the person',
    'anthropic_messages',
    {
      role: 'user',
      content: [
        { type: 'text', text: 'see' },
        { type: 'image', source: SOURCE },
      ],
    },
    ANTHROPIC,
  ],
  [
    'Anthropic, twice in a tool’s answer',
    'anthropic_messages',
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'a',
          content: [
            { type: 'image', source: SOURCE },
            { type: 'image', source: SOURCE },
          ],
        },
      ],
    },
    2 * ANTHROPIC,
  ],
  [
    'Anthropic, elsewhere',
    'anthropic_messages',
    {
      role: 'user',
      content: [{ type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }],
    },
    1_600,
  ],
  [
    'Anthropic, a document',
    'anthropic_messages',
    { role: 'user', content: [{ type: 'document', source: { type: 'base64', data: PDF } }] },
    6_000,
  ],
  [
    'Chat',
    'openai_chat_completions',
    { role: 'user', content: [{ type: 'image_url', image_url: { url: URL } }] },
    TILES,
  ],
  [
    'Chat, in low detail',
    'openai_chat_completions',
    { role: 'user', content: [{ type: 'image_url', image_url: { url: URL, detail: 'low' } }] },
    85,
  ],
  [
    'Chat, sound',
    'openai_chat_completions',
    { role: 'user', content: [{ type: 'input_audio', input_audio: { data: PDF, format: 'wav' } }] },
    600,
  ],
  [
    'Chat, a file',
    'openai_chat_completions',
    {
      role: 'user',
      content: [{ type: 'file', file: { file_data: `data:application/pdf;base64,${PDF}` } }],
    },
    6_000,
  ],
  [
    'Responses',
    'openai_responses',
    { role: 'user', content: [{ type: 'input_image', image_url: URL }] },
    TILES,
  ],
  [
    'Responses, a tool’s answer',
    'openai_responses',
    {
      type: 'function_call_output',
      call_id: 'a',
      output: [{ type: 'input_image', image_url: URL }],
    },
    TILES,
  ],
  [
    'Responses, of a screen',
    'openai_responses',
    {
      type: 'computer_call_output',
      call_id: 'a',
      output: { type: 'computer_screenshot', image_url: URL },
    },
    TILES,
  ],
  [
    'Responses, made by the model',
    'openai_responses',
    { type: 'image_generation_call', id: 'ig_1', result: SCREENSHOT },
    TILES,
  ],
])('a picture, document or sound counts by the provider’s rule, not by its base64: %s', (...of) => {
  const [, dialect, item, expected] = of;
  expect(Math.abs(tokensOf(dialect, item) - expected)).toBeLessThan(12);
  expect(Math.abs(tokensOf(dialect, item, { escapes: true }) - expected)).toBeLessThan(60);
});

test('a document of plain text counts as text', () => {
  const data = 'Many words of a document. '.repeat(500);
  const content = [{ type: 'document', source: { type: 'text', data } }];
  const tokens = tokensOf('anthropic_messages', { role: 'user', content });
  expect(Math.abs(tokens)).toBeLessThan(12);
});
