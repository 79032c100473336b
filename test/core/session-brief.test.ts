import { expect, test } from 'vitest';
import { SaidLines } from '../../src/core/recall/said-lines.ts';
import * as brief from '../../src/core/recall/session-brief.ts';

const VALUES = new Map([['quai', 3]]);
const ref = 'm_aaaaaaaabbbbbbbb';
const titleOf = (...given: Parameters<typeof brief.titleOf>): string =>
  brief.titleOf(...given)?.title ?? '';
const asked = (text: string) => [{ ref, asked: text, answered: '' }];

test('a statement of one sentence is a title whole, with its value at the end', () => {
  const fact =
    'The integration tests of the quay only pass with DOCKER=1 and a database that listens on port 6431.';
  expect(titleOf(asked(fact), VALUES)).toBe(fact);
});

test('a sentence that does not fit is cut with the reference of its text', () => {
  const long = `The tests of the quay ${'and of the harbour beside it '.repeat(9)}listen on port 6431.`;
  expect(titleOf(asked(long), VALUES)).toMatch(/^The tests of the quay .{10,60}… \(m_aaaaaaaa\)$/);
  const cut = titleOf(asked(`Refactor ${long}`), VALUES);
  expect(cut).toMatch(/^Refactor The tests .{10,60}… \(m_aaaaaaaa\)$/);
});

test.each([
  'I do not know the tide planner of the quai, because no file names it.',
  'I don’t have the ninth option of the quai.',
  'I could not find a tide planner in the quai.',
  'I cannot see the quai from here.',
  "Unfortunately, I can't tell which quai is meant.",
  "I'm not sure which quai you mean.",
  'I am unable to find the quai.',
])('where the person only steered, a model that has no answer gives no title: %s', (answered) => {
  expect(titleOf([{ ref, asked: 'continue', answered }], VALUES)).toBe('');
  const answer = 'The quai moved to Bergen because the tide planner was too slow.';
  expect(titleOf([{ ref, asked: 'continue', answered: answer }], VALUES)).toContain(
    'The quai moved',
  );
  expect(titleOf([{ ref, asked: 'Move the quai to Bergen.', answered }], VALUES)).toContain('Move');
});

test('what the prompt says gives no title; the next sentence does, or nothing', () => {
  const said = new SaidLines('Migrate the quay. This is for ticket 12.');
  const text = 'Migrate the quay. This is for ticket 7.';
  expect(titleOf(asked(text), VALUES, said)).toBe('');
  expect(titleOf(asked(`${text} The quay moved to Bergen.`), VALUES, said)).toBe(
    'The quay moved to Bergen.',
  );
});

test.each(['Since that is the stable link.', 'review it', 'It fails on the quay of Bergen.', '9'])(
  '%j names no subject',
  (text) => {
    expect(titleOf(asked(text), VALUES)).toBe('');
  },
);

test.each([
  'signing                                        binary=dist of the quai',
  '/workflows:review the quai',
  '.entire/metadata/<date> of the quai',
  'dev@quai harbour depot % ls',
  'we know that the quai one was removed',
  'quai errors',
])('pasted output, a command, a label and what points back is no title: %s', (text) => {
  expect(titleOf(asked(text), VALUES)).toBe('');
});

test('a cut title ends with a word that says something, and has a reference only where it loses a value', () => {
  const cut = titleOf(
    asked(`Refactor the harbour depot of the tide planner for the ${'boats and '.repeat(9)}ships`),
    VALUES,
  );
  expect(cut).toBe('Refactor the harbour depot of the tide planner for the boats and boats…');
});

test('each session gets its share, and a long statement what the others leave', () => {
  const statement = 'The tests of the harbour depot only pass with DOCKER=1 and port 6431.';
  const titleWithin = (limits: brief.TitleLimits) =>
    brief.titleOf(asked(statement), VALUES, new SaidLines(''), limits);
  const given = { briefTokensMax: 125, days: 1 };
  expect(brief.shareTitles([titleWithin], given)[0]?.title).toBe(statement);
  const four = brief.shareTitles(
    Array.from({ length: 4 }, () => titleWithin),
    given,
  );
  expect(four.filter((one) => one?.title === statement).length).toBeLessThan(4);
});

test('a sentence that fits comes before a longer one that would be cut', () => {
  const long = `The harbour ${'and the depot beside it '.repeat(9)}listen on port 6431`;
  expect(titleOf(asked(`${long}. The harbour depot moved to Bergen.`), VALUES)).toBe(
    'The harbour depot moved to Bergen.',
  );
});

test('where the person only steered, the answer names the subject and says whose words it is', () => {
  const answered = 'The harbour depot moved to Bergen.';
  expect(titleOf([{ ref, asked: 'ok, go', answered }], VALUES)).toBe(`assistant: ${answered}`);
  const remark = 'Research on the other planner of the tide is thorough and complete.';
  expect(titleOf([{ ref, asked: 'ok, go', answered: remark }], new Map())).toBe('');
  const named = 'Research on `tide_planner.ts` is thorough and complete.';
  expect(titleOf([{ ref, asked: 'ok, go', answered: named }], new Map())).toContain('tide_planner');
});

test.each([
  ['The port is 6431.', 'Set the port to 6432.', false],
  ['This is for ticket 7.', 'Fix it. This is for ticket 12, please.', true],
  ['this is  FOR ticket 7', 'This is for ticket 7.', true],
  ['port', 'the ports', false],
  ['…', 'x', true],
])('%j stands in the prompt %j: %j', (line, prompt, isSaid) => {
  expect(new SaidLines(prompt).has(line)).toBe(isSaid);
});
