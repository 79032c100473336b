import { expect, test } from 'vitest';
import { readQuestion } from '../../src/core/recall/question.ts';

function proving(text: string): string[] {
  const { human, asking } = readQuestion(text, '', Date.UTC(2026, 0, 1));
  return human.filter((term) => !asking.has(term));
}

test.each([
  ['Wann muss ich die Arbeit abgeben?', ['arbeit', 'abgeben']],
  ['¿Cuántos productos hay en el catálogo?', ['producto', 'catalogo']],
  ['Pourquoi est-ce que le cache expire ?', ['cach', 'expir']],
  ['Сколько партиций в топике?', ['партиций', 'топике']],
  ['Which port does the proxy use?', ['port', 'proxi', 'us']],
  ['现在用的是哪个版本的数据库?', ['版本', '数据', '据库']],
  ['最低バージョンはいくつですか。', ['最低', '低バ', 'バー', 'ージ', 'ジョ', 'ョン']],
])('words that only ask prove nothing, in many languages: %s', (text, expected) => {
  expect(proving(text)).toEqual(expected);
});

test('a question of nothing but asking words keeps them', () => {
  expect(proving('いくつですか')).not.toEqual([]);
});

test.each<[string, string[]]>([
  ["What did Caroline's sister tell Maria about the trip?", ['carolin', 'maria']],
  ['When did we move to Hetzner?', ['hetzner']],
  ['Sherlock said what?', []],
  ['What happened in May, on Monday?', []],
  ['Is the API of UserService in src/Users.ts?', []],
  ['Welche Datenbank nutzt das Projekt?', []],
  ['Fix The Docker Build Of The Api Package', []],
])('names are written with a capital after another word: %s', (text, expected) => {
  expect([...readQuestion(text, '', Date.UTC(2026, 0, 1)).names]).toEqual(expected);
});
