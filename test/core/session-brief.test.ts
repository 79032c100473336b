import { expect, test } from 'vitest';
import { SaidLines } from '../../src/core/recall/said-lines.ts';
import { isOpening } from '../../src/core/recall/openings.ts';
import * as brief from '../../src/core/recall/session-brief.ts';
import * as wire from '../support/dialect-wire.ts';
import { viewOf } from '../support/view-of.ts';

const VALUES = new Map([['quai', 3]]);
const titleOf = (
  exchanges: readonly brief.TitledExchange[],
  values: ReadonlyMap<string, number>,
  said = new SaidLines(''),
  tokensMax?: number,
): string => {
  const titles = brief.titlesOf(exchanges, values);
  return (titles.said(said, tokensMax) ?? titles.about(said, tokensMax))?.title ?? '';
};
const asked = (text: string) => [{ asked: text, answered: '' }];

test('a statement of one sentence is a title whole, with its value at the end', () => {
  const fact =
    'The integration tests of the quay only pass with DOCKER=1 and a database that listens on port 6431.';
  expect(titleOf(asked(fact), VALUES)).toBe(fact);
});

test('a sentence that does not fit is no title', () => {
  expect(titleOf(asked(`Refactor the quai ${'of the harbour '.repeat(20)}.`), VALUES)).toBe('');
});

test('a clause in front of its main clause, and an abbreviation, end no sentence', () => {
  for (const text of [
    'if the quai moves, keep the tide planner',
    'the quai fails re. tide planners',
  ]) {
    expect(titleOf(asked(text), VALUES)).toBe(text);
  }
});

test('a question is no title; a statement beside it is, or what was answered', () => {
  const question = 'Is the tide planner of the quai tested?';
  const answered = 'The tide planner of the quai has no test in `planner.test.ts`.';
  expect(titleOf(asked(question), VALUES)).toBe('');
  expect(titleOf([{ asked: question, answered }], VALUES)).toBe(`assistant: ${answered}`);
  expect(titleOf(asked(`${question} The quai moved to Bergen.`), VALUES)).toBe(
    'The quai moved to Bergen.',
  );
});

test.each([
  'mend the planner so we do not break these again',
  'split the planner of tides, and keep this',
  'add the newest tide of the planner there',
])('%j names its object by what was said before, and is no title', (text) => {
  expect(titleOf(asked(text), VALUES)).toBe('');
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
  expect(titleOf([{ asked: 'continue', answered }], VALUES)).toBe('');
  const answer = 'The quai moved to Bergen because the tide planner was too slow.';
  expect(titleOf([{ asked: 'continue', answered: answer }], VALUES)).toContain('The quai moved');
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
  'quai errors',
  'In [38]: planner(tide, harbour, quai)',
  'from quai.planner import Tide, Harbour',
  '6:606 Setting the planner of the quai to true',
  'error: no planner of the quai in this harbour',
  'why are the planner files changed in /quai/harbour/planner.ts',
  'does the planner of the quai support tides of the harbour',
  'respond to the feedback of quai together',
  'Option 1 works with the planner of the quai',
  'add this harbour option to the planner of the quai',
  'improve that rule of the quai planner and harbour',
  'thats not the harbour quai of the planner',
  'did you forget, the planner of the quai needs a harbour',
  'go ahead, and feel free to start the crane of the harbour',
  'one of them keeps the crane of the harbour at rest',
  'for 312 I agree that the crane of the harbour is late',
  'seems the crane of the harbour is late again',
])('pasted output, a command, a label and what points back is no title: %s', (text) => {
  expect(titleOf(asked(text), VALUES)).toBe('');
});

test('a session of another branch is listed only if it fits the prompt well, or if no session does', () => {
  const now = Date.UTC(2026, 4, 9);
  const session = (name: string, isSameBranch: boolean, fit: number) => ({
    name,
    isSameBranch,
    fit,
    at: now - 3_600_000,
    sharedWords: 4,
  });
  const listed = (sessions: readonly ReturnType<typeof session>[]) =>
    brief.likeliestSessions(sessions, now).map(({ name }) => name);
  const fitting = session('fits', false, 1);
  const own = session('own branch', true, 0.1);
  const other = session('other', false, 0.4);
  expect(listed([other, own, fitting])).toEqual(['own branch', 'fits']);
  expect(listed([other])).toEqual([]);
  expect(listed([session('new', false, 0)])).toEqual(['new']);
});

const MOVED = 'Moved `tide_planner.ts` to the depot of Bergen.';
const session = (text: string, answered: string, branch = '') => {
  const { said, about } = brief.titlesOf([{ asked: text, answered }], VALUES);
  return {
    branch,
    titleWithin: (tokensMax: number) => said(new SaidLines(''), tokensMax),
    namesWithin: (tokensMax: number) => about(new SaidLines(''), tokensMax),
  };
};
const titlesOf = (sessions: readonly ReturnType<typeof session>[], briefTokensMax = 125) =>
  brief.shareTitles(sessions, { briefTokensMax, days: 1 }).map((one) => one?.title);

test('what was asked stands before what was concluded, where both fit and the session has no names', () => {
  const order = 'Move the tide planner to Bergen';
  const moved = 'Moved the tide planner of the quai to the depot of Bergen because of 12 boats.';
  expect(titleOf([{ asked: order, answered: moved }], VALUES)).toBe(
    `${order} → assistant: ${moved}`,
  );
  const long = `${order}, and keep ${'the boats of the harbour and '.repeat(9)}the quai`;
  expect(titleOf([{ asked: long, answered: moved }], VALUES)).toBe(`assistant: ${moved}`);
  expect(titleOf([{ asked: order, answered: MOVED }], VALUES)).toBe(`assistant: ${MOVED}`);
});

test('a conclusion that names nothing of its session stands behind its names', () => {
  const answered = 'Fixed the tides of Bergen in 3 places because the depot was closed.';
  const exchanges = [
    { asked: 'mend `tide_planner.ts`, it loses a row', answered: 'See `readTides()`.' },
    { asked: 'ok, go', answered },
  ];
  const title = brief.titlesOf(exchanges, new Map()).said(new SaidLines(''));
  expect(title?.title).toBe(`about \`readTides()\`, \`tide_planner.ts\` → assistant: ${answered}`);
  expect(title?.exchanges).toEqual(exchanges);
});

test('a session without a conclusion is listed by its names instead of an order of its day', () => {
  const order = 'check that the tide planner of the quai still opens planner.json';
  const exchanges = [
    { asked: order, answered: 'The tide planner of the quai opens `readTides()` now?' },
    { asked: 'ok', answered: '' },
  ];
  const { said, about } = brief.titlesOf(exchanges, VALUES);
  expect(said(new SaidLines(''))).toBeUndefined();
  expect(about(new SaidLines(''))).toEqual({
    title: 'about `readTides()`, `planner.json`',
    exchanges: exchanges.slice(0, 1),
  });
  expect(about(new SaidLines('about readTides() planner.json'))).toBeUndefined();
});

test('the conclusion comes from the text after the last tool call', () => {
  const before = 'Fixed `tide_planner.ts` because the depot of Bergen was closed.';
  const answered = `${before}\n\n${MOVED}`;
  const exchange = { asked: 'ok, go', answered, lastFrom: before.length + 2 };
  expect(titleOf([exchange], VALUES)).toBe(`assistant: ${MOVED}`);
});

test.each([
  'The token stats would be added to `tide_planner.ts` of Bergen.',
  'Used by `tide_planner.ts` and the depot of Bergen.',
  'Sees `tide_planner.ts` as the depot of Bergen.',
  'The crane of the harbour depot was painted in `crane_paint.ts`.',
])('an answer that is open, a piece, or beside what was asked is no title: %s', (answered) => {
  const text = 'Why does the tide planner of Bergen lose the last row of the quai?';
  const { said } = brief.titlesOf([{ asked: text, answered }], VALUES);
  expect(said(new SaidLines(''))).toBeUndefined();
});

test('a request alone is a title only if its answer takes up its words', () => {
  const order = 'rename the tide planner of the quai';
  expect(titleOf([{ asked: order, answered: 'All done.' }], VALUES)).toBe('');
  const answered = 'All tide planner files are done.';
  expect(titleOf([{ asked: order, answered }], VALUES)).toBe(order);
  expect(titleOf([{ asked: order, answered: '' }], VALUES)).toBe(order);
});

test('each session gets its share, and a long line what the others leave', () => {
  const long = `Moved \`tide_planner.ts\` to the depot of Bergen because the boats of the quai left at 6431.`;
  const [first, second, third] = titlesOf([
    session('ok, go', long),
    session('ok, go', MOVED),
    session('ok, go', ''),
  ]);
  expect([first, second, third]).toEqual([`assistant: ${long}`, `assistant: ${MOVED}`, undefined]);
  const four = Array.from({ length: 4 }, () => session('ok, go', MOVED));
  expect(titlesOf(four, 88).filter((title) => title !== undefined)).toHaveLength(2);
  const longs = Array.from({ length: 4 }, () => session('ok, go', long));
  const names = 'about `tide_planner.ts`';
  expect(titlesOf(longs)).toEqual([`assistant: ${long}`, names, names, `assistant: ${long}`]);
});

test('a branch names a session where it fits, once', () => {
  const sessions = [
    session('ok, go', MOVED, 'feat/tides'),
    session('ok, go', MOVED, 'feat/tides'),
    session('ok, go', MOVED, `feat/${'long-'.repeat(40)}`),
  ];
  expect(titlesOf(sessions)).toEqual([
    `(feat/tides) assistant: ${MOVED}`,
    `assistant: ${MOVED}`,
    `assistant: ${MOVED}`,
  ]);
});

test.each([
  'start the planner of the quai with a harbour',
  'CI reports gaps of the quai planner on that PR',
  'use this branch for the planner of the quai harbour',
  'check the cranes that this harbour of quai_planner has',
  'Should the harbour be closed, the planner of the quai waits.',
  '12 cranes are too many for the planner of the quai',
])('what names its subject is a title: %s', (text) => {
  expect(titleOf(asked(text), VALUES)).toBe(text);
});

test('of an answer the first sentence of a line is a title, and a sentence comes before a label', () => {
  const title = (answered: string) =>
    titleOf([{ asked: 'ok, go', answered }], VALUES, new SaidLines(''), 20);
  const first = 'The Bergen tests fail because the depot has no proxy.';
  const rest = `From now on the quai of Bergen takes ${'its own boats and '.repeat(9)}cranes.`;
  expect(title(`${first} ${rest}`)).toBe(`assistant: ${first}`);
  expect(title('Moved the harbour depot to `quai.ts`')).toContain('Moved the harbour depot');
  expect(title(`The harbour depot (to publish the quai boats in \`quai.ts\`)\n\n${first}`)).toBe(
    `assistant: ${first}`,
  );
});

test('where the person only steered, the answer names the subject and says whose words it is', () => {
  const answered = 'The harbour depot moved to `bergen.ts`.';
  expect(titleOf([{ asked: 'ok, go', answered }], VALUES)).toBe(`assistant: ${answered}`);
  const remark = 'Research on the other planner of the tide is thorough and complete.';
  expect(titleOf([{ asked: 'ok, go', answered: remark }], new Map())).toBe('');
  const named = 'Research on `tide_planner.ts` is thorough and complete.';
  expect(titleOf([{ asked: 'ok, go', answered: named }], new Map())).toContain('tide_planner');
});

test('a session of a question alone is named by the cause that was found', () => {
  const question = 'Why does the tide planner lose its last row?';
  const answered = 'Root cause: the tide planner closes its file before the last row is flushed.';
  expect(titleOf([{ asked: question, answered }], new Map())).toBe(`assistant: ${answered}`);
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

test.each(wire.DIALECTS)(
  '%s: the list comes with the first prompt that may name a subject',
  (dialect) => {
    const opens = (...items: readonly wire.WireItem[]): boolean =>
      isOpening(viewOf(dialect, wire.requestWith(dialect, items)));
    const subject = wire.said('user', 'Why does the tide planner lose its last row?');
    const answers = [
      wire.said('user', '14'),
      wire.said('assistant', 'Which one?'),
      wire.said('user', 'yes, option 2'),
    ];
    expect(opens(subject)).toBe(true);
    expect(opens(...answers, wire.said('assistant', 'Done.'), subject)).toBe(true);
    expect(
      opens(
        ...answers,
        wire.said('assistant', 'Done.'),
        subject,
        wire.said('assistant', 'It closes its file.'),
        wire.said('user', 'Why does the quay fail?'),
      ),
    ).toBe(false);
    expect(opens(wire.said('assistant', 'Hello.'), subject)).toBe(false);
  },
);
