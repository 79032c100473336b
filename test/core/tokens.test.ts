import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { estimateTextTokens, estimateTokens } from '../../src/core/bytes/tokens.ts';

// None of these texts was fitted to: the totals must hold on what nobody has seen.
const root = join(import.meta.dirname, '..', '..');
const random = randomBytes(7);

const CLASSES: Readonly<Record<string, string>> = {
  'English prose': repeat(
    'The proxy keeps what earlier sessions said, and adds it to the prompt when it helps. ' +
      "Nobody has to remember the decisions that were made three weeks ago; they're looked up, " +
      'weighed against the question, and placed where the model can read them. If nothing ' +
      'relevant is found, nothing is added, which turns out to be the right answer quite often.\n\n' +
      'Yesterday I walked along the river with Caroline, who told me about her new job at the ' +
      "hospital. She doesn't enjoy the night shifts, but her colleagues are wonderful!\n",
  ),
  // Code of packages whose versions the lockfile pins: a corpus that does not change under the test.
  'JavaScript code': packaged('undici/lib/dispatcher/client.js'),
  'TypeScript types': packaged('undici/types/dispatcher.d.ts'),
  'JavaScript with comments': packaged('commander/lib/command.js'),
  'JSON, indented': readFileSync(join(root, 'package.json'), 'utf8'),
  'JSON, dense': JSON.stringify(
    Array.from({ length: 200 }, (_, id) => ({
      id,
      name: `user_${id}`,
      isActive: id % 3 === 0,
      score: id * 1.37,
    })),
  ),
  logs: Array.from(
    { length: 200 },
    (_, at) =>
      `2026-03-${10 + (at % 19)}T08:${10 + (at % 49)}:07.${100 + at}Z ${at % 7 ? 'INFO' : 'ERROR'} ` +
      `[worker-${at % 4}] request ${hex(random(6))} finished in ${at * 13}ms status=${at % 7 ? 200 : 502}`,
  ).join('\n'),
  'file listing': Array.from(
    { length: 200 },
    (_, at) =>
      `-rw-r--r-- 1 root root ${at * 317} Nov 20 16:${10 + (at % 49)} src/part${at % 9}/module-${at}.ts`,
  ).join('\n'),
  base64: Buffer.from(random(20_000)).toString('base64'),
  hex: hex(random(10_000)),
  Chinese: repeat(
    '代理会记住以前会话中说过的内容,并在有用的时候把它加到提示里。如果没有找到相关的内容,就什么也不加。昨天我和朋友一起去公园散步,天气非常好。',
  ),
  Japanese: repeat(
    'プロキシは以前のセッションで話された内容を覚えていて、役に立つときにプロンプトへ追加します。昨日は友達と公園を散歩しました。とても楽しかったです。',
  ),
  Korean: repeat(
    '프록시는 이전 세션에서 말한 내용을 기억하고 도움이 될 때 프롬프트에 추가합니다. 어제는 친구와 함께 공원을 산책했습니다. 날씨가 아주 좋았습니다. ',
  ),
  Russian: repeat(
    'Прокси помнит, что было сказано в прошлых сессиях, и добавляет это к запросу, когда это полезно. Вчера мы гуляли по парку, и погода была прекрасная. ',
  ),
  German: repeat(
    'Der Proxy merkt sich, was in früheren Sitzungen gesagt wurde, und fügt es hinzu, wenn es hilft. Gestern gingen wir am Fluss spazieren, und das Wetter war schön. ',
  ),
  emoji: repeat(
    'Done 🎉 tests pass ✅ build failed ❌ deploy 🚀 looks good 👍 thinking 🤔 bug 🐛 fixed 🔧 ',
  ),
};

describe('against o200k_base', () => {
  test.each(Object.entries(CLASSES))('%s is within 20 %%', (_name, text) => {
    expect(errorOf(text)).toBeGreaterThan(-0.2);
    expect(errorOf(text)).toBeLessThan(0.2);
  });

  test('all of them together are within 6 %', () => {
    const all = Object.values(CLASSES);
    const estimated = all.reduce((sum, text) => sum + estimateTextTokens(text), 0);
    const exact = all.reduce((sum, text) => sum + countTokens(text), 0);
    expect(Math.abs(estimated / exact - 1)).toBeLessThan(0.06);
  });

  test.each(Object.entries(CLASSES))(
    '%s is the same inside a JSON string, within 3 %%',
    (_name, text) => {
      const inside = estimateTextTokens(JSON.stringify(text));
      expect(Math.abs(inside / estimateTextTokens(text) - 1)).toBeLessThan(0.03);
    },
  );
});

test('an estimate of a part is that of the part alone', () => {
  const bytes = Buffer.from(`${'word '.repeat(30)}const x = 1;${' tail'.repeat(30)}`);
  expect(estimateTokens(bytes, 150, 162)).toBe(estimateTextTokens('const x = 1;'));
  expect(estimateTokens(bytes, 162)).toBe(estimateTextTokens(' tail'.repeat(30)));
});

test('nothing costs nothing', () => {
  expect(estimateTextTokens('')).toBe(0);
  expect(estimateTokens(Buffer.from('abc'), 3)).toBe(0);
});

test('no text costs more than two tokens a byte, however odd it is', () => {
  for (const odd of ['x', 'X', '7', 'aB', 'a1', ' 1', '\\', '\\u', '{', '\n', 'ÿ', '\u{10FFFF}']) {
    const text = odd.repeat(1000);
    expect(estimateTextTokens(text)).toBeLessThanOrEqual(2 * Buffer.byteLength(text));
  }
});

function errorOf(text: string): number {
  return estimateTextTokens(text) / countTokens(text) - 1;
}

function packaged(path: string): string {
  return readFileSync(join(root, 'node_modules', path), 'utf8');
}

function repeat(text: string): string {
  return text.repeat(Math.ceil(4_000 / text.length));
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** Bytes that are the same in every run. */
function randomBytes(seed: number): (count: number) => Uint8Array {
  let state = seed;
  return (count) =>
    Uint8Array.from({ length: count }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return state >> 16;
    });
}
