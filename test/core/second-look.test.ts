import { expect, test } from 'vitest';
import { cuesOf, frequencyOf, passagesAbout, tellAbout } from '../../src/core/recall/cues.ts';
import { type Action, actionOf, newestResult, wordsOf } from '../../src/core/recall/second-look.ts';
import { viewRequest } from '../support/view-of.ts';
import { DIALECTS, requestWith, said, toolRound, type WireItem } from '../support/dialect-wire.ts';
import type { Dialect } from '../../src/core/conversation/view.ts';

function viewOf(dialect: Dialect, items: readonly WireItem[]) {
  const body = requestWith(dialect, [said('user', 'Make it work.'), ...items]);
  const view = viewRequest(Buffer.from(JSON.stringify(body)), dialect);
  if (view === undefined) throw new Error('The body of this test is not a request.');
  return { view, prompt: view.items.findIndex(({ humanText }) => humanText !== '') };
}

const ROUNDS: readonly (readonly [output: string, input: WireItem])[] = [
  ['1→export const lock = 1;', { file_path: '/home/ada/walrus/src/harbour_lock.ts' }],
  ['src/a.ts:3: acquireLock()', { pattern: 'acquireLock|release', path: 'src' }],
  [
    'line one\nError: cannot acquire lock walrus-tide: held by 4711\n  throw new Error("x");',
    { command: 'SVC_MODE=fast npm run tide:check -- src/tide/job.test.ts' },
  ],
  ['done', { input: '*** Begin Patch\n*** Update File: src/tide/writer.py\n@@\n*** End Patch' }],
];

test.each(DIALECTS)(
  '%s: an action is what the calls name and what their outputs report',
  (dialect) => {
    const rounds = ROUNDS.map(([output, input], at) =>
      toolRound(dialect, `call_${at}`, output, input),
    );
    const { view, prompt } = viewOf(dialect, rounds.flat());
    expect(actionOf(view, prompt)).toEqual({
      files: ['src/tide/writer.py', 'src/tide/job.test.ts', '/home/ada/walrus/src/harbour_lock.ts'],
      names: ['tide:check', 'SVC_MODE', 'acquireLock'],
      commands: ['SVC_MODE=fast npm run tide:check -- src/tide/job.test.ts'],
      errors: ['Error: cannot acquire lock walrus-tide: held by 4711'],
    });
    const fewer = viewOf(dialect, rounds.slice(0, 3).flat());
    expect(actionOf(fewer.view, fewer.prompt)).toBeUndefined();
  },
);

test.each(DIALECTS)('%s: a fault of a call itself is no error of the project', (dialect) => {
  const wrong =
    '<tool_use_error>Text to replace not found in file.\nError: walrus</tool_use_error>';
  const rounds = [...ROUNDS, [wrong, { path: 'src/tide.ts' }] as const];
  const { view, prompt } = viewOf(
    dialect,
    rounds.flatMap(([output, input], at) => toolRound(dialect, `call_${at}`, output, input)),
  );
  expect(actionOf(view, prompt)?.errors).toEqual([
    'Error: cannot acquire lock walrus-tide: held by 4711',
  ]);
});

test.each(DIALECTS)(
  '%s: a block goes into a result that nothing of the model or the person follows',
  (dialect) => {
    const round = toolRound(dialect, 'call_1', 'text');
    const { view } = viewOf(dialect, round);
    expect(newestResult(view)).toBe(view.items.length - 1);
    for (const last of [
      said('assistant', 'It works.'),
      said('user', 'And now the other one, please.'),
    ]) {
      expect(newestResult(viewOf(dialect, [...round, last]).view)).toBeUndefined();
    }
    expect(newestResult(viewOf(dialect, []).view)).toBeUndefined();
  },
);

const ACTION: Action = {
  files: ['/home/ada/walrus/src/harbour_lock.ts', 'src/tide/index.ts'],
  names: ['acquireLock'],
  commands: ['npm run tide:check'],
  errors: ['Error: cannot acquire lock walrus-tide: held by 4711'],
};

test('a cue is a name as people write it, and what the prompt names was asked about with it', () => {
  const texts = (prompt: string) => cuesOf(ACTION, prompt).map(({ kind, text }) => [kind, text]);
  expect(texts('Make it work.')).toEqual([
    ['error', 'Error: cannot acquire lock walrus-tide: held by 4711'],
    ['file', 'harbour_lock.ts'],
    ['file', 'tide/index.ts'],
    ['name', 'acquireLock'],
  ]);
  expect(texts('Why does acquireLock in harbour_lock.ts wait?')).toHaveLength(2);
});

test('the index knows a name by its whole form, or by its rarest word where folders are in front of it', () => {
  const [cue] = cuesOf({ ...ACTION, errors: [] }, '');
  if (cue === undefined) throw new Error('There is no cue.');
  const counts = new Map([
    ['harbour', 4],
    ['lock', 90],
    ['ts', 700],
    ['harbourlockt', 2],
  ]);
  expect(frequencyOf(cue, (term) => counts.get(term) ?? 0)).toBe(2);
  counts.delete('harbourlockt');
  expect(frequencyOf(cue, (term) => counts.get(term) ?? 0)).toBe(4);
  counts.delete('harbour');
  expect(frequencyOf(cue, (term) => counts.get(term) ?? 0)).toBe(0);
});

const RULE =
  'The lock in `harbour_lock.ts` must never be held while the tide job writes, because both wait.';
const CONTEXT = new Map([
  ['tide', 3],
  ['write', 2],
]);

function told(answered: string, { context = CONTEXT, copies = 1, lastFrom = 0 } = {}): string[] {
  const cues = cuesOf(ACTION, 'Make it work.').map((cue) => ({ ...cue, value: 5 }));
  const exchanges = Array.from({ length: copies }, (_, at) => ({
    asked: 'Why does it wait?',
    answered,
    lastFrom,
    at,
  }));
  return tellAbout(exchanges, cues, context).flatMap(({ quotes }) =>
    quotes.map(({ text }) => text),
  );
}

test('a line comes from the text after the last call, and only without one from a cause before it', () => {
  const before = RULE.replace('must never', 'cannot');
  const about = (last: string) => {
    const answered = `${before}\n\n${last}`;
    return told(answered, { lastFrom: before.length + 2 });
  };
  expect(about(RULE)).toEqual([RULE]);
  expect(about('It is done.')).toEqual([before]);
  expect(about('').concat(told('It waits.', { lastFrom: 3 }))).toEqual([before]);
});

test.each([
  ['a rule about the file', RULE, true],
  [
    'the cause of the same error',
    'An error: it cannot acquire the lock of walrus-tide, because the nightly job of the shop has it until the pumps restart.',
    true,
  ],
  [
    'a line that only names the file',
    'Changed harbour_lock.ts and the tide job for the walrus shop today.',
    false,
  ],
  [
    'a list of changed files',
    '- `src/harbour_lock.ts` (+13 lines) so that the tide job never waits for writes',
    false,
  ],
  ['another file with a longer name', RULE.replace('harbour_lock.ts', 'my-harbour_lock.ts'), false],
  [
    'a question',
    'Should the tide job never hold the lock in harbour_lock.ts while the shop writes?',
    false,
  ],
  [
    'a table row',
    '| `harbour_lock.ts` | never hold it while the tide job writes | because both wait |',
    false,
  ],
])('an earlier answer is quoted or not: %s', (_, answered, isQuoted) => {
  expect(told(answered)).toHaveLength(isQuoted ? 1 : 0);
});

test('a line that shares nothing with the work is not quoted, nor one about a file of which all speak', () => {
  expect(told(RULE, { context: new Map() })).toEqual([]);
  expect(told(RULE, { copies: 20 })).toEqual([]);
  expect(told(RULE, { copies: 2 })).toHaveLength(2);
});

test('of a line that is too long those sentences are quoted that fit, each whole', () => {
  const before =
    'The pumps of the walrus shop were built by another team in the spring of that year. ';
  const [quoted, ...others] = told(`${before.repeat(4)}${RULE} ${before}`);
  expect(others).toEqual([]);
  expect(quoted).toBe(RULE);
  const endless = RULE.replace(
    'never',
    `never, ${'whatever the tide of the walrus says, '.repeat(9)}`,
  );
  expect(told(endless)).toEqual([]);
});

test('a memory that knows only questions is asked names, and what it says of something else is dropped', () => {
  expect(wordsOf(ACTION).split('\n')).toEqual([...ACTION.files, ...ACTION.names, ...ACTION.errors]);
  const passages = [{ text: RULE }, { text: 'The tide job must never write at night.' }];
  expect(passagesAbout(passages, ACTION, 'Make it work.')).toEqual([{ text: RULE }]);
});
