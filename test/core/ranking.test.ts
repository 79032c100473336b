import { expect, test } from 'vitest';
import { asksForTime, datesIn, datesOf, isTimeWord } from '../../src/core/dates.ts';
import { readQuestion } from '../../src/core/question.ts';
import { type Candidate, inverseFrequency, rankCandidates } from '../../src/core/ranking.ts';
import { type Evidence, keepRelevant, rarityOf } from '../../src/core/relevance.ts';
import { isDigest, referenceOf } from '../../src/core/reference.ts';
import { termsOf } from '../../src/core/terms.ts';
import { eachNumber, highest } from '../../src/core/top.ts';

const CORPUS = { passages: 1000, averageTerms: 6 };

function candidate(id: number, text: string, other: Partial<Candidate> = {}): Candidate {
  const terms = termsOf(text);
  return { id, record: id, role: 'user', at: 0, terms, previous: [], next: [], ...other };
}

function order(question: string, candidates: readonly Candidate[]): number[] {
  const { human, pairs, asksWhen, dates } = readQuestion(question, '');
  const terms = human.map((term) => ({ term, weight: 1, frequency: 5, rarity: 1 }));
  const ranked = rankCandidates({ terms, pairs, asksWhen, dates }, candidates, CORPUS);
  return ranked.map(({ candidate: { id } }) => id);
}

test('more of the question ranks higher', () => {
  const candidates = [candidate(1, 'red kite'), candidate(2, 'red kite harbour')];
  expect(order('red kite harbour', candidates)).toEqual([2, 1]);
});

test('what the person said outranks the same from the assistant', () => {
  const theirs = candidate(1, 'red kite one', { role: 'assistant' });
  expect(order('red kite', [theirs, candidate(2, 'red kite two')])).toEqual([2, 1]);
});

test('of two statements on the same thing the later one comes first, whichever answers a little better', () => {
  const earlier = candidate(1, 'staging port 6432', { at: 1000 });
  const later = candidate(2, 'staging port moved 7432', { at: 2000 });
  expect(order('staging port', [earlier, later])).toEqual([2, 1]);
  expect(order('staging port', [later, earlier])).toEqual([2, 1]);
  const twin = candidate(3, 'staging port 6432', { at: 3000 });
  expect(order('staging port', [earlier, twin])[0]).toBe(3);
});

test('a later word of the assistant does not come before what the person said', () => {
  const theirs = candidate(1, 'staging port 6432', { at: 1000 });
  const answer = candidate(2, 'staging port 7432', { at: 2000, role: 'assistant' });
  expect(order('staging port', [theirs, answer])).toEqual([1, 2]);
});

test('what is later but about something else does not come first', () => {
  const earlier = candidate(1, 'staging port 6432 for the pool', { at: 1000 });
  const other = candidate(2, 'staging deploys wait until Thursday evening for Marta', { at: 2000 });
  expect(order('staging port', [earlier, other])).toEqual([1, 2]);
});

test('an answer beside the words of the question is found', () => {
  const answer = candidate(1, 'pizza', { previous: termsOf('favourite food') });
  expect(order('favourite food', [candidate(2, 'harbour pizza'), answer])[0]).toBe(1);
});

test('words side by side outrank the same words apart', () => {
  const candidates = [
    candidate(1, 'kite harbour red tower'),
    candidate(2, 'red kite harbour tower'),
  ];
  expect(order('red kite', candidates)[0]).toBe(2);
});

test('a repetition steps back behind something new', () => {
  const candidates = [
    candidate(1, 'red kite harbour'),
    candidate(2, 'red kite harbour'),
    candidate(3, 'red kite tower mill'),
  ];
  expect(order('red kite', candidates)[1]).toBe(3);
});

test('a month and year in the question lift what was said then', () => {
  const candidates = [
    candidate(1, 'kite flown', { at: Date.UTC(2024, 2, 3) }),
    candidate(2, 'kite flown', { at: Date.UTC(2024, 6, 3) }),
  ];
  expect(order('which kite in July 2024', candidates)[0]).toBe(2);
});

test('a word is never worthless, and rarer ones are worth more, in the smallest store too', () => {
  expect(inverseFrequency(1, 1)).toBeGreaterThan(1);
  expect(inverseFrequency(50, 50)).toBeGreaterThan(0);
  expect(inverseFrequency(1, 50)).toBeGreaterThan(inverseFrequency(2, 50));
  expect(rarityOf('zephyr', 0, 1)).toBe(1);
  expect(rarityOf('code', 0, 1)).toBeLessThan(rarityOf('zephyr', 5, 1000));
});

test.each<[string, Evidence, boolean]>([
  ['all of a short question', { held: 1, asked: 1, words: 1 }, true],
  ['half of it, by one word', { held: 1, asked: 2, words: 1 }, true],
  ['a third of it, by one word', { held: 1, asked: 3, words: 1 }, false],
  ['several rare words of a long prompt', { held: 3, asked: 20, words: 4 }, true],
  ['one rare word of a long prompt', { held: 1, asked: 20, words: 2 }, false],
  ['all of it, but words that every passage holds', { held: 0.2, asked: 0.2, words: 2 }, false],
  ['nothing', { held: 0, asked: 0, words: 0 }, false],
])('relevance: %s', (_, evidence, isRelevant) => {
  expect(keepRelevant([{ evidence }])).toHaveLength(isRelevant ? 1 : 0);
});

test('the words of time are terms as the tokeniser makes them', () => {
  for (let month = 0; month < 12; month += 1) {
    const at = Date.UTC(2024, month, 15);
    const name = new Intl.DateTimeFormat('en', { month: 'long', timeZone: 'UTC' }).format(at);
    expect([...datesOf(at)]).toEqual(termsOf(`2024 ${name}`));
  }
  for (const word of termsOf('yesterday tomorrow Monday weeks years tonight')) {
    expect(isTimeWord(word)).toBe(true);
  }
});

test('dates are months and years, and the verb may is neither', () => {
  expect(datesIn(termsOf('may I see what happened in July 2024'))).toEqual(['2024', 'juli']);
  expect(datesIn(termsOf('in May 2024'))).toEqual(['2024', 'mai']);
  expect(datesIn(termsOf('it may rain'))).toEqual([]);
  expect([...datesOf(Date.UTC(2023, 11, 31, 23))]).toEqual(['2023', 'decemb']);
  expect(asksForTime('When did we deploy?')).toBe(true);
  expect(asksForTime('whenever')).toBe(false);
});

test('of a long prompt both ends are read, of the assistant the last words', () => {
  const question = readQuestion(
    `first ${'middle '.repeat(5000)} last`,
    `${'early '.repeat(9)} late`,
  );
  expect(question.human).toEqual(['first', 'middl', 'last']);
  const ends = readQuestion(`alpha ${'. '.repeat(50_000)} omega`, 'alpha beta');
  expect(ends.human).toEqual(['alpha', 'omega']);
  expect(ends.assistant).toEqual(['beta']);
});

test('a reference is m_ and 16 characters of the digest', () => {
  expect(referenceOf('A'.repeat(43))).toBe('m_aaaaaaaaaaaaaaaa');
  expect(referenceOf(`__${'A'.repeat(41)}`)).toBe('m_77yaaaaaaaaaaaaa');
  expect(isDigest('A'.repeat(43))).toBe(true);
  expect(isDigest('A'.repeat(44))).toBe(false);
});

test('the highest are found, and of equal ones the later', () => {
  const values = new Map([
    [1, 5],
    [2, 9],
    [3, 5],
    [4, 1],
  ]);
  expect(highest(values, 2)).toEqual([2, 3]);
  expect(highest(values, 9)).toEqual([2, 3, 1, 4]);
  expect(highest(new Map(), 3)).toEqual([]);
  const seen: number[] = [];
  for (const text of ['', '7', '12,3,4096']) eachNumber(text, (number) => seen.push(number));
  expect(seen).toEqual([7, 12, 3, 4096]);
});
