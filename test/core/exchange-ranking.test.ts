import { expect, test } from 'vitest';
import {
  type ExchangeQuestion,
  rankExchanges,
  wordNumber,
  wordNumbers,
} from '../../src/core/recall/exchange-ranking.ts';
import { readTerms, termsOf } from '../../src/core/recall/terms.ts';

const DAY_MS = 86_400_000;
const now = 100 * DAY_MS;

interface Said {
  readonly name: string;
  readonly asked: string;
  readonly answered: string;
  readonly days?: number;
  readonly branch?: string;
  /** The end of the answer. */
  readonly concluded?: string;
  readonly isUnverified?: boolean;
}

interface Given {
  /** Words around the prompt. */
  readonly around?: string;
  readonly branch?: string;
  readonly files?: readonly string[];
}

function rank(prompt: string, said: readonly Said[], given: Given = {}) {
  const { around = '', branch: ownBranch = 'feat/x', files = [] } = given;
  const numbers = (text: string) => Int32Array.from(termsOf(text).map(wordNumber));
  const exchanges = said.map(
    ({ name, asked, answered, concluded = '', days = 10, branch = '', isUnverified = false }) => ({
      name,
      asked: numbers(asked),
      answered: numbers(`${answered} ${concluded}`),
      concludedFrom: concluded === '' ? 0 : numbers(answered).length,
      answerChars: 500,
      at: now - days * DAY_MS,
      branch,
      isUnverified,
    }),
  );
  const own = [...new Set(termsOf(prompt))];
  const beside = [...new Set(termsOf(around))].filter((term) => !own.includes(term));
  const question: ExchangeQuestion = {
    terms: [...own, ...beside].map((term) => ({ term, value: 3, isOwn: own.includes(term) })),
    words: readTerms(prompt).words,
    files: files.map((name) => readTerms(name).words),
    branch: ownBranch,
    now,
    exchanges: 100,
    averageTerms: 10,
    averageAsked: 4,
    averageConcluded: 4,
  };
  const { ranked, signal } = rankExchanges(question, exchanges);
  return { names: ranked.map(({ exchange }) => exchange.name), signal };
}

test('words that stand side by side as in the prompt outrank the same words apart', () => {
  const { names } = rank('does the merge base change', [
    { name: 'apart', asked: 'base', answered: 'we merge every change whose branch has a base' },
    { name: 'phrase', asked: 'base', answered: 'every branch has a merge base we change' },
  ]);
  expect(names).toEqual(['phrase', 'apart']);
});

test('of two that fit alike the newer comes first, and the older where it fits much better', () => {
  const old = { name: 'old', asked: 'decoder', answered: 'the decoder is slow', days: 40 };
  const fresh = { name: 'new', asked: 'decoder', answered: 'the decoder is slow', days: 0 };
  expect(rank('decoder slow', [old, fresh]).names).toEqual(['new', 'old']);
  const other = { name: 'new', asked: 'colours', answered: 'the slow fade of colours', days: 0 };
  expect(rank('decoder slow', [old, other]).names).toEqual(['old', 'new']);
});

test('words around the prompt decide between exchanges that share its own words', () => {
  const tests = [
    { name: 'parser', asked: 'a test', answered: 'a test of the parser' },
    { name: 'sharing', asked: 'a test', answered: 'a test of the sharing' },
  ];
  expect(rank('one more test', tests, { around: 'The sharing of folders works.' }).names[0]).toBe(
    'sharing',
  );
  expect(rank('one more test', tests, { around: 'The parser works.' }).names[0]).toBe('parser');
});

test('of two that fit alike, the one whose answer ends with the words of the prompt comes first', () => {
  const words = ['slow decoder', 'colours of a canvas and a frame'];
  const ends = {
    name: 'ends',
    asked: 'a test',
    answered: words[1] ?? '',
    concluded: words[0] ?? '',
  };
  const begins = { ...ends, name: 'begins', answered: words[0] ?? '', concluded: words[1] ?? '' };
  expect(rank('slow decoder', [begins, ends]).names).toEqual(['ends', 'begins']);
});

test('what nobody vouches for comes behind all that a person began, however well it fits', () => {
  const planted = { name: 'planted', asked: '', answered: 'decoder slow', isUnverified: true };
  const said = { name: 'said', asked: 'decoder', answered: 'fast' };
  expect(rank('decoder slow', [planted, said]).names).toEqual(['said', 'planted']);
});

test('of two that fit alike, the one that names a file of this session comes first', () => {
  const other = { name: 'other', asked: 'decoder', answered: 'slow in the commit of manual hooks' };
  const named = { name: 'named', asked: 'decoder', answered: 'slow in manual_commit_hooks of the' };
  const files = ['manual_commit_hooks'];
  expect(rank('decoder slow', [other, named], { files }).names).toEqual(['named', 'other']);
});

test('of two that fit alike, the one of this branch comes first, but not on everybody’s branch', () => {
  const older = { name: 'older', asked: 'decoder', answered: 'slow', days: 11, branch: 'feat/x' };
  const newer = { ...older, name: 'newer', days: 10, branch: 'feat/y' };
  expect(rank('decoder slow', [older, newer]).names).toEqual(['older', 'newer']);
  const onMain = [{ ...older, branch: 'main' }, newer];
  expect(rank('decoder slow', onMain, { branch: 'main' }).names).toEqual(['newer', 'older']);
});

test('the signal of a prompt without a branch stands between those of matches on its branch and elsewhere', () => {
  const said = { asked: 'decoder', answered: 'slow', branch: 'feat/x' };
  const many = ['a', 'b', 'c'].map((name) => ({ ...said, name }));
  const signalOn = (branch: string) => rank('decoder slow', many, { branch }).signal;
  expect(signalOn('feat/x')).toBeGreaterThan(signalOn(''));
  expect(signalOn('')).toBeGreaterThan(signalOn('feat/y'));
});

test('a prompt whose matches are on its own branch has a higher signal', () => {
  const on = (branch: string) =>
    rank('decoder slow', [{ name: 'one', asked: 'decoder', answered: 'slow', branch }]).signal;
  expect(on('feat/x')).toBeGreaterThan(on('main'));
  expect(on('')).toBe(on('main'));
});

test('words without a match give no signal, and an empty memory none', () => {
  expect(rank('decoder', [{ name: 'one', asked: 'colours', answered: 'fade' }]).signal).toBe(0);
  expect(rank('decoder', []).signal).toBe(0);
});

test('the numbers of a line of words are those of its words, from an index on', () => {
  const line = 'answer 7 decoder slow  größe ';
  expect(wordNumbers(line, 9)).toEqual(['decoder', 'slow', 'größe'].map(wordNumber));
  expect(wordNumbers(line, line.length)).toEqual([]);
  expect(new Set(wordNumbers(line, 0)).size).toBe(5);
});
