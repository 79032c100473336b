import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { expect, test } from 'vitest';
import { tokensAtMost } from '../../src/core/recall/block-tokens.ts';

const REGIONS =
  'US DE JP BR IN RU FR CN EG NG ZA KR MX ID TR IT TH GB PL UA SE NO AR CL PE VN'.split(' ');

test.each([
  'ar',
  'bn',
  'cs',
  'de',
  'el',
  'es',
  'fi',
  'fr',
  'he',
  'hi',
  'hu',
  'id',
  'it',
  'ja',
  'ka',
  'ko',
  'pl',
  'pt',
  'sw',
  'ta',
  'th',
  'tr',
  'uk',
  'vi',
  'zh',
])('no language takes more tokens than it says: %s', (language) => {
  const names = new Intl.DisplayNames([language], { type: 'region' });
  const text = REGIONS.map((code) => names.of(code)).join(' ');
  expect(tokensAtMost(text) * 1.03).toBeGreaterThan(countTokens(text));
});

const PROSE =
  'We moved the nightly export to the new queue on Friday, because the old one lost jobs whenever ' +
  'Redis restarted. Marta keeps the runbook; the deadline is the 27th of March.';

test('of English prose it says little more than there is', () => {
  const tokens = countTokens(PROSE);
  expect(tokensAtMost(PROSE)).toBeGreaterThanOrEqual(tokens);
  expect(tokensAtMost(PROSE)).toBeLessThan(tokens * 1.15);
});

test.each([
  'cmd/entire/cli/strategy/manual_commit_test.go-1117-\tshadowBranchName := "entire/abc1234"',
  '    at Object.<anonymous> (/srv/app/node_modules/lib/parser.js:1042:17)',
  '│   │   ├─ Summary ● = Uncommitted (Steps) ○ = Committed',
  'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  '{"id":"3f2504e0-4f89-11d3-9a0c-0305e82c3301","n":1.0e-9}',
  '👩‍👩‍👧‍👦 🚀🚀🚀 👍🏽',
])('paths, logs, hashes and signs take no more: %s', (text) => {
  expect(tokensAtMost(text)).toBeGreaterThanOrEqual(countTokens(text));
});
