import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { EXCERPT_TOKENS_MAX } from '../../src/core/memory/reference.ts';
import { estimateTextTokens } from '../../src/core/bytes/tokens.ts';
import { excerptOf, type ExcerptRequest } from '../../src/cli/memory/excerpt.ts';

const WORDS = {
  lines: (range: string) => `--lines ${range}`,
  grep: '--grep PATTERN',
  around: '--around NAME',
  all: '--all',
};

function ask(text: string, request: ExcerptRequest): { text: string; rest?: string } {
  const excerpt = excerptOf(text, request, WORDS);
  if ('problem' in excerpt) throw new Error(excerpt.problem);
  return excerpt;
}

const LOG = Array.from({ length: 900 }, (_, at) => `line ${at + 1} of a long log\n`).join('');

test('a short text comes whole, to the byte, and nothing is said about it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (text) => {
      expect(ask(text, {})).toEqual({ text });
    }),
  );
});

test('a long text comes in parts that fit together, each as long as the last one says', () => {
  let [whole, lines] = ['', undefined as string | undefined];
  for (let parts = 0; parts < 50; parts += 1) {
    const part = ask(LOG, { lines });
    expect(estimateTextTokens(part.text)).toBeLessThanOrEqual(EXCERPT_TOKENS_MAX);
    whole += part.text;
    lines = /Go on with --lines (\d+-\d+)/.exec(part.rest ?? '')?.[1];
    if (lines === undefined) break;
  }
  expect(whole).toBe(LOG);
  expect(ask(LOG, { all: true })).toEqual({ text: LOG });
});

test('of one endless line its start comes, and the way to the rest', () => {
  const { text, rest } = ask('x'.repeat(200_000), {});
  expect(text).toMatch(/^x+$/);
  expect(estimateTextTokens(text)).toBeLessThanOrEqual(EXCERPT_TOKENS_MAX);
  expect(rest).toContain('--all');
});

test('a found line comes with fewer lines beside it where more have no room', () => {
  const long = Array.from({ length: 101 }, (_, at) => `${at} ${'wide '.repeat(80)}\n`);
  long[60] = 'needle\n';
  const { text, rest } = ask(long.join(''), { grep: 'needle', context: 50 });
  expect(text).toContain('61:needle\n');
  expect(text).toMatch(/^60-/m);
  expect(estimateTextTokens(text)).toBeLessThanOrEqual(EXCERPT_TOKENS_MAX);
  expect(rest).toContain('1 of 1 found lines');
});

test('found lines come with their numbers, and what is beside them', () => {
  const { text, rest } = ask(LOG, { grep: 'line (7|9) ', context: 1 });
  expect(text).toBe(
    '6-line 6 of a long log\n7:line 7 of a long log\n8-line 8 of a long log\n' +
      '9:line 9 of a long log\n10-line 10 of a long log\n',
  );
  expect(rest).toBe('[svc: 2 of 2 found lines, of 900 lines.]');
  const apart = ask(LOG, { grep: 'line (1|5) ', context: 0 }).text;
  expect(apart).toBe('1:line 1 of a long log\n--\n5:line 5 of a long log\n');
});

test('a pattern that matches everything shows as much as the limit, and says so', () => {
  const { text, rest } = ask(LOG, { grep: 'log' });
  expect(estimateTextTokens(text)).toBeLessThanOrEqual(EXCERPT_TOKENS_MAX + 100);
  expect(rest).toMatch(/^\[svc: \d+ of 900 found lines, of 900 lines\. .*--all/);
  expect(ask(LOG, { grep: 'log', all: true }).text.split('\n')).toHaveLength(901);
  const minified = ask(`${'y'.repeat(300_000)}needle\n`, { grep: 'needle|y' });
  expect(minified.text.length).toBeLessThan(500);
});

test('around a name comes its definition, else the lines that have the word', () => {
  const code = `${'// filler\n'.repeat(100)}/** Adds. */\nfunction add(a, b) {\n  return a + b;\n}\nfunction sub() {}\n`;
  const { text, rest } = ask(code, { around: 'add' });
  expect(text).toContain('/** Adds. */\nfunction add(a, b) {\n  return a + b;\n}\n');
  expect(text).not.toContain('function sub');
  expect(rest).toBe('[svc: lines 99-104 of 105.]');
  expect(ask(LOG, { around: 'line 400' }).text).toContain('line 400 of a long log');
});

test('what is not there is said with what to try', () => {
  const wrong: readonly ExcerptRequest[] = [
    { lines: '3-2' },
    { lines: '5000-6000' },
    { grep: 'zebra' },
    { around: 'zebra' },
    { around: '  ' },
    { grep: 'a', lines: '1-2' },
  ];
  for (const request of wrong) {
    expect(excerptOf(LOG, request, WORDS)).toMatchObject({ problem: expect.any(String) });
  }
});

test('any request of any text is answered within the limit', () => {
  const texts = fc
    .array(fc.constantFrom('word ', 'x'.repeat(3_000), '\n', 'class A:', '€', '𝄞'), {
      maxLength: 60,
    })
    .map((pieces) => pieces.join(''));
  const requests = fc.oneof(
    fc.record({ grep: fc.constantFrom('word', '.', 'x*', '('), context: fc.nat(50) }),
    fc.record({ around: fc.constantFrom('A', 'word', '€') }),
    fc.record({ lines: fc.tuple(fc.nat(9), fc.nat(30)).map(([a, b]) => `${a + 1}-${a + 1 + b}`) }),
  );
  fc.assert(
    fc.property(texts, requests, (text, request) => {
      const excerpt = excerptOf(text, request, WORDS);
      if ('problem' in excerpt) return;
      expect(estimateTextTokens(excerpt.text)).toBeLessThanOrEqual(EXCERPT_TOKENS_MAX * 1.1);
    }),
  );
});
