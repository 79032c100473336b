import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeywordIndex } from '../../src/core/redaction/keyword-index.ts';
import { maskSecrets, stripPrivate } from '../../src/core/redaction/redaction.ts';
import { decodeEscapes } from '../../src/core/redaction/own-secrets.ts';
import { NAME_RULES } from '../../src/core/redaction/name-rules.ts';
import { SECRET_RULES } from '../../src/core/redaction/secret-rules.ts';
import { plantForms } from '../support/planted-forms.ts';
import { plantSecrets } from '../support/planted-secrets.ts';

/** Pieces that rules begin, end and break with, joined in any order. */
const PIECES = [
  'password',
  'token',
  'api_key',
  'secret',
  ' is ',
  '=',
  ': ',
  ':',
  '"',
  "'",
  '\\"',
  '\\n',
  '\n',
  ' ',
  '(',
  '[',
  ']',
  '{',
  '@',
  '://',
  'user:',
  '.',
  ',',
  ';',
  '-',
  '_',
  '/',
  'sk-',
  'sk-ant-',
  'AKIA',
  'ghp_',
  'xoxb-',
  'eyJ',
  'Bearer ',
  'authorization: basic ',
  '-----BEGIN PRIVATE KEY-----',
  '-----END PRIVATE KEY-----',
  '[masked: jwt]',
  '[masked: ',
  'AccountKey=',
  '--password ',
  ' -u a:',
  'A_KEY=',
  'Cookie: a=b; ',
  'kind: Secret',
  '\ndata:\n  a: ',
  'recovery codes: ',
  'OTP ',
  '4111 1111 1111 1111',
  '4',
  '%22',
  '%3A',
  '&quot;',
  '\\u0022',
  '\\\\',
  '\nvalue: ',
  '<password>',
  'SG.',
  'hf_',
  'npm_',
  'key-',
  '<private>',
  '</private>',
  'a',
  'Z9',
  '7f3a9c',
  'é',
  '😀',
];

const piece = fc.oneof(
  fc.constantFrom(...PIECES),
  fc.stringMatching(/^[A-Za-z0-9]{8,48}$/),
  fc.integer({ min: 1, max: 999 }).chain((seed) => {
    const planted = [...plantSecrets(seed), ...plantForms(seed)];
    return fc.constantFrom(...planted.map((it) => it.secret), ...planted.map((it) => it.line));
  }),
);
const hostileText = fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join(''));

test('R26: masking a masked text changes nothing', () => {
  fc.assert(
    fc.property(hostileText, (text) => {
      const once = maskSecrets(text).text;
      expect(maskSecrets(once)).toEqual({ text: once, masked: 0 });
    }),
    { numRuns: 2_000 },
  );
});

test('R26, T15: a planted secret is never in what comes out, whatever stands around its line', () => {
  const lines = fc.array(fc.lorem({ maxCount: 12 }), { maxLength: 6 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e6 }), lines, lines, (seed, before, after) => {
      for (const { secret, line } of [...plantSecrets(seed), ...plantForms(seed)]) {
        const { text } = maskSecrets([...before, line, ...after].join('\n'));
        expect(text).not.toContain(secret);
      }
    }),
    { numRuns: 100 },
  );
});

test('R26: what is not masked stays, in its order', () => {
  fc.assert(
    fc.property(hostileText, (text) => {
      const kept = maskSecrets(text).text.split(/\[masked: [a-z-]+\]/);
      let from = 0;
      for (const part of kept) {
        const at = text.indexOf(part, from);
        expect(at).toBeGreaterThanOrEqual(0);
        from = at + part.length;
      }
    }),
  );
});

test('private passages are gone after one pass: a second one finds none', () => {
  fc.assert(
    fc.property(hostileText, (text) => {
      const once = stripPrivate(text);
      expect(stripPrivate(once)).toBe(once);
      expect(/<private>/i.test(once)).toBe(false);
    }),
  );
});

test('R26: no rule repeats without a bound, repeats a repetition, or can read a mask', () => {
  for (const { kind, pattern, rest } of [...SECRET_RULES, ...NAME_RULES]) {
    const source = pattern.source.replaceAll(/\\.|\[(?:\\.|[^\]])*\]/g, 'x');
    expect(source, kind).not.toMatch(/[*+]|\{\d+,\}/);
    expect(source, kind).not.toMatch(/\{\d+,\d+\}[^()]*\)(?:\{|\?\{)\d+,\d{3,}\}/);
    expect(rest?.source ?? '', kind).toMatch(/^(?:|\(\?:\)|\[(?:\\.|[^\]])+\]\*)$/);
  }
});

test('R41: every place of a text without escapes is the place of the same character in the text', () => {
  fc.assert(
    fc.property(hostileText, (text) => {
      const { view, toText } = decodeEscapes(text);
      expect(toText(view.length)).toBe(text.length);
      let before = -1;
      for (let at = 0; at < view.length; at += 1) {
        const place = toText(at);
        expect(place).toBeGreaterThan(before);
        const isEscape = '\\\\%&'.includes(text.charAt(place));
        if (!isEscape) expect(text.charAt(place)).toBe(view.charAt(at));
        before = place;
      }
    }),
  );
});

test('R41: how deep a secret is escaped makes no difference', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e6 }), fc.integer({ min: 1, max: 4 }), (seed, depth) => {
      for (const { secret, line } of plantSecrets(seed).slice(-20)) {
        let text = JSON.stringify({ note: `"${line}"` });
        for (let times = 1; times < depth; times += 1) text = JSON.stringify({ text });
        expect(maskSecrets(text).text).not.toContain(secret);
      }
    }),
    { numRuns: 50 },
  );
});

test('the index of keywords finds what a text of any length contains, and nothing else', () => {
  const filler = fc.constantFrom('a', 'g', 'ghp_', 'ghq', 'key=', '\u{1F511}', 'ÿĀ', '-----', ' ');
  const text = fc
    .tuple(fc.array(filler, { maxLength: 40 }), fc.nat({ max: 400 }))
    .map(([parts, times]) => parts.join('') + parts.toReversed().join('').repeat(times));
  const keyword = fc.array(filler, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''));
  const rule = fc.array(keyword, { maxLength: 4 }).map((keywords) => ({ keywords }));
  fc.assert(
    fc.property(text, fc.array(rule, { maxLength: 12 }), (where, rules) => {
      const whole = where.slice(0, 4000);
      const found = new KeywordIndex(rules).rulesFor(whole);
      for (const one of rules) {
        expect(found.has(one)).toBe(one.keywords.some((word) => whole.includes(word)));
      }
    }),
    { numRuns: 400 },
  );
});
