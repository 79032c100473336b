import { expect, test } from 'vitest';
import {
  asksForTime,
  datesIn,
  datesOf,
  isTimeWord,
  spanIn,
  wasIn,
} from '../../src/core/recall/dates.ts';
import { readQuestion } from '../../src/core/recall/question.ts';
import type { Candidate, Evidence } from '../../src/core/recall/ranked.ts';
import { orderParts, rankCandidates } from '../../src/core/recall/ranking.ts';
import { keepRelevant, rarerNames, rarityOf } from '../../src/core/recall/relevance.ts';
import { inverseFrequency } from '../../src/core/recall/term-value.ts';
import { isDigest, referenceOf } from '../../src/core/memory/reference.ts';
import { termsOf } from '../../src/core/recall/terms.ts';

const NOW = Date.UTC(2024, 7, 1);
const CORPUS = { passages: 1000, averageTerms: 6 };

function candidate(id: number, text: string, other: Partial<Candidate> = {}): Candidate {
  const terms = termsOf(text);
  const around = { previous: [], next: [], earlier: [], later: [] };
  return { id, record: id, role: 'user', at: 0, terms, parts: [], ...around, ...other };
}

const NOTHING = { question: false, order: false };

function evidence(held: number, asked: number, strength: number): Evidence {
  return { held, asked, strength };
}

function order(question: string, candidates: readonly Candidate[]): number[] {
  const asked = readQuestion(question, '', NOW);
  const terms = asked.human.map((term) => ({ term, weight: 1, frequency: 5, rarity: 1 }));
  const ranked = rankCandidates({ ...asked, terms }, candidates, CORPUS);
  return ranked.map(({ candidate: { id } }) => id);
}

test('more of the question ranks higher', () => {
  const candidates = [candidate(1, 'red kite'), candidate(2, 'red kite harbour')];
  expect(order('red kite harbour', candidates)).toEqual([2, 1]);
});

test('what the person said outranks the same from the assistant', () => {
  const theirs = candidate(2, 'red kite one', { role: 'assistant' });
  expect(order('red kite', [theirs, candidate(1, 'red kite two')])).toEqual([1, 2]);
});

test('an answer of one passage outranks a passage of a long answer, which repeats the question', () => {
  const ofLong = candidate(2, 'red kite one', { role: 'assistant', isOfLongAnswer: true });
  const short = candidate(1, 'red kite two', { role: 'assistant' });
  expect(order('red kite', [ofLong, short])).toEqual([1, 2]);
  // A better match than a person's words stands before them only when it is a statement of its own.
  const person = candidate(3, 'red kite three and four and more');
  expect(
    order('red kite harbour', [person, candidate(1, 'red kite harbour', { role: 'assistant' })]),
  ).toEqual([1, 3]);
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

test('of what is, the later statement may say it in other words; of what was, it may not', () => {
  const earlier = candidate(1, 'staging port 6432 for the connection pool', { at: 1000 });
  const later = candidate(2, 'the pool on staging listens at 7432', { at: 2000 });
  expect(order('What is the staging port of the pool?', [earlier, later])).toEqual([2, 1]);
  expect(order('What was the staging port of the pool?', [earlier, later])).toEqual([1, 2]);
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

test.each<[string, Evidence, { question: boolean; order: boolean }]>([
  ['all of it', evidence(1, 1, 1), { question: true, order: true }],
  ['a third of it, well said', evidence(1, 3, 0.6), { question: true, order: true }],
  ['a third of it', evidence(1, 3, 0.4), { question: true, order: false }],
  ['a third of it, by the way', evidence(1, 3, 0.3), NOTHING],
  ['a sixth of it, among neighbours that say more', evidence(1, 6, 0.9), NOTHING],
  ['all of it, but words that are everywhere', evidence(0.2, 0.2, 1), NOTHING],
  ['nothing', evidence(0, 0, 0), NOTHING],
])('relevance: %s', (_, held, expected) => {
  for (const [kind, isRelevant] of Object.entries(expected)) {
    const kept = keepRelevant([{ evidence: held }], { isQuestion: kind === 'question' });
    expect(kept).toHaveLength(isRelevant ? 1 : 0);
  }
});

test('a name of which nobody heard outweighs the rest, unless another one is known', () => {
  const ask = (text: string, known: readonly string[]) => {
    const { human, names } = readQuestion(text, '', NOW);
    const terms = human.map((term) => {
      return { term, weight: 1, frequency: known.includes(term) ? 3 : 0, rarity: 0.9 };
    });
    return rarerNames(terms, names).map(({ term, rarity }) => [term, rarity > 1]);
  };
  expect(ask('What does Priya like about rowing?', ['row'])).toEqual([
    ['priya', true],
    ['like', false],
    ['row', false],
  ]);
  const known = ask('What does Priya like about the Thames?', ['priya']);
  expect(known.some(([, isRarer]) => isRarer)).toBe(false);
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
    NOW,
  );
  expect(question.human).toEqual(['first', 'middl', 'last']);
  const ends = readQuestion(`alpha ${'. '.repeat(50_000)} omega`, 'alpha beta', NOW);
  expect(ends.human).toEqual(['alpha', 'omega']);
  expect(ends.assistant).toEqual(['beta']);
});

test('a reference is m_ and 16 characters of the digest', () => {
  expect(referenceOf('A'.repeat(43))).toBe('m_aaaaaaaaaaaaaaaa');
  expect(referenceOf(`__${'A'.repeat(41)}`)).toBe('m_77yaaaaaaaaaaaaa');
  expect(isDigest('A'.repeat(43))).toBe(true);
  expect(isDigest('A'.repeat(44))).toBe(false);
});

const WEDNESDAY = Date.UTC(2026, 10, 18, 15);

test.each([
  ['What did we do yesterday?', '2026-11-17', 1],
  ['what have I said today', '2026-11-18', 1],
  ['the port from two days ago', '2026-11-16', 1],
  ['What did I decide last week?', '2026-11-09', 7],
  ['what was planned this week', '2026-11-16', 3],
  ['everything of last month', '2026-10-01', 31],
  ['what broke last Friday', '2026-11-13', 1],
  ['and last wednesday', '2026-11-11', 1],
  ['the plan of March 3rd', '2026-03-03', 1],
  ['on 24 December', '2025-12-24', 1],
  ['what was said on May 5', '2026-05-05', 1],
  ['what was said on may 5', '2026-05-05', 1],
  ['the plan of 3rd may', '2026-05-03', 1],
  ['the plan from 3 may 2024', '2024-05-03', 1],
  ['on the 4th of December, 2023', '2023-12-04', 1],
  ['Where was James at on July 12, 2022?', '2022-07-12', 1],
  ['the log of 2026-02-28', '2026-02-28', 1],
  ['the deploy a week ago', '2026-11-08', 7],
  ['the release of February 29', '2024-02-29', 1],
])('the days that a question names: %s', (text, first, days) => {
  const from = Date.parse(`${first}T00:00:00Z`);
  expect(spanIn(text, WEDNESDAY)).toMatchObject({ from, to: from + days * 86_400_000 });
});

test.each([
  'fix the failing test',
  'may I go',
  'which of the 3 may be removed?',
  'what if step 2 may fail',
  'why may 2 processes share the lock?',
  'version 3.51.3',
  'the last line',
  'on June 45',
  'on February 31',
  'on 31 April 2026',
  'the log of 2026-02-30',
  'the log of 2026-13-01',
  'on February 29, 2026',
])('no days are named by: %s', (text) => expect(spanIn(text, WEDNESDAY)).toBeUndefined());

test('what is told within three days may be about the day', () => {
  const span = spanIn('on 2026-11-10', WEDNESDAY) ?? { from: 0, to: 0 };
  expect(wasIn(span, Date.UTC(2026, 10, 10, 9))).toBe(true);
  expect(wasIn(span, Date.UTC(2026, 10, 13, 9))).toBe(true);
  expect(wasIn(span, Date.UTC(2026, 10, 9, 23))).toBe(false);
  expect(wasIn(span, Date.UTC(2026, 10, 14, 9))).toBe(false);
});

test('of a question and its answer the part that answers comes first, and the person before the assistant', () => {
  const part = (role: 'user' | 'assistant', text: string) => ({ role, terms: termsOf(text) });
  const ranked = (parts: Candidate['parts']) => {
    const terms = ['kite', 'harbour'].map((term) => ({ term, weight: 1, frequency: 5, rarity: 1 }));
    const asked = readQuestion('kite harbour', '', NOW);
    const one = candidate(1, 'red kite harbour', { parts });
    return orderParts(rankCandidates({ ...asked, terms }, [one], CORPUS)).map((it) => it.part);
  };
  expect(ranked([part('user', 'red'), part('user', 'kite harbour')])).toEqual([1, 0]);
  expect(ranked([part('assistant', 'kite harbour'), part('user', 'kite harbour')])).toEqual([1, 0]);
  expect(ranked([])).toEqual([0]);
});

test.each([
  ['Which port?', true],
  ['remind me of the port', true],
  ['Explain the retry rule', true],
  ['fix the failing test', false],
  ['Add a flag and document it', false],
  ['最低SDKはいくつですか。', true],
  ['这个接口用的是哪个端口呢', true],
  ['wie heißt der Port', true],
  ['cuándo sale la versión', true],
  ['проверь порт', false],
])('who asks wants to know, who orders wants something done: %s', (text, isQuestion) => {
  expect(readQuestion(text, '', NOW).isQuestion).toBe(isQuestion);
});
