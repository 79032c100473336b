import { expect, test } from 'vitest';
import {
  isAnswer,
  isReply,
  isReplyPrompt,
  ownWordsOf,
  sentencesAsked,
} from '../../src/core/recall/own-words.ts';

test('replies, menu answers and approvals ask nothing of a memory', () => {
  const replies = [
    'yes',
    '9',
    'commit',
    '8 6',
    'Option 2 seems best',
    'ok, push it',
    'lgtm, merge',
  ];
  const asking = ['continue', 'let me give it to you', 'can you fix this?', 'do it', ''];
  for (const text of [...replies, ...asking]) expect(isReply(ownWordsOf(text)), text).toBe(true);
});

test('a short prompt that names its subject is no reply', () => {
  for (const text of [
    'still failing e2e',
    'why is the migration of shares missing?',
    'PR 185 fails',
  ]) {
    expect(isReply(ownWordsOf(text)), text).toBe(false);
  }
});

test('a prompt that begins with consent or a choice is a reply unless it says much more', () => {
  const answers = [
    '5 seems like a calm harbour to begin with',
    '3 but apply it to the lighthouse branch',
    'yes please, and answer all quay comments',
    'Sure, let the gate stay open',
    '2, then the ferry to the lighthouse',
    '1. just make sure that the ferry sees the comment',
  ];
  for (const text of answers) {
    expect([text, isReply(text), isReplyPrompt(text), isAnswer(text)]).toEqual([
      text,
      false,
      true,
      true,
    ]);
  }
  for (const text of [
    'yes, and the gateway of the quay must keep its lock file when the ferry of the harbour restarts at night',
    '2 tests of the lighthouse fail',
    'yesterday the gate of the quay was open',
    '5 ferries are late at the quay',
    '1. mend the quay\n2. move the ferry',
    '1.5 tons are too much for the quay',
  ]) {
    expect(isReplyPrompt(text), text).toBe(false);
  }
});

test('greetings are replies that answer nothing', () => {
  for (const text of ['hello there', 'continue']) {
    expect([text, isReplyPrompt(text), isAnswer(text)]).toEqual([text, true, false]);
  }
  for (const text of ['9', 'yes', 'commit it, then go on']) expect(isAnswer(text), text).toBe(true);
});

test('pasted output, paths and the repeat of an edited prompt are not own words', () => {
  const pasted = 'why?\n$ npm test\n  at run (a.js:1)\nsrc/a.ts:3: wrong\n/home/dev/project/a.ts';
  expect(ownWordsOf(pasted).trim()).toBe('why?');
  const edited = 'fix all critical and high issues\n\nfix all critical and high issues, please';
  expect(ownWordsOf(edited)).toBe('fix all critical and high issues');
});

test('a pasted document says its subject in its heading, and other headings are labels', () => {
  const plan = '# Move the tide planner\n\n## Context\n\nThe planner is slow.';
  expect(sentencesAsked(`Implement the following plan:\n\n${plan}`)).toEqual([
    'Move the tide planner',
  ]);
  expect(sentencesAsked(plan)).toEqual(['Move the tide planner']);
  expect(sentencesAsked('The planner is slow.\n\n### Steps to reproduce\n\nOpen it.')).toEqual([
    'The planner is slow.',
    'Open it.',
  ]);
  expect(sentencesAsked('Mend ticket #12.\n#12 is urgent.')).toEqual([
    'Mend ticket #12.',
    '#12 is urgent.',
  ]);
});

test('a person’s list is the person’s words, a diff is not', () => {
  const list = 'Please:\n- keep the parser a stream\n  - and pin undici 7\n* drop the shares';
  expect(ownWordsOf(list)).toBe(list);
  const diff = 'why?\n--- a/quay.ts\n+++ b/quay.ts\n@@ -1 +1 @@\n- const a = 1\n+ const a = 2';
  expect(ownWordsOf(diff)).not.toMatch(/const/);
  expect(ownWordsOf('why?\n- the old line\n+ the new line').trim()).toBe('why?');
});

test('a prompt that a client showed behind its mark is the person’s words, a shell’s in it is not', () => {
  expect(ownWordsOf('❯ move the parser to streams')).toBe('move the parser to streams');
  expect(ownWordsOf('I got this:\n❯ git rebase main').trim()).toBe('I got this:');
});

test('the quotes that opencode run puts around a prompt are not its words', () => {
  const cases = [
    ['"Deploy with make ship. It takes an hour."', ['Deploy with make ship.', 'It takes an hour.']],
    [String.raw`"It prints \"done\" at the end."`, ['It prints "done" at the end.']],
    ['"Yes" is not "no".', ['"Yes" is not "no".']],
    [String.raw`"The disk is C:\"`, [String.raw`"The disk is C:\"`]],
  ] as const;
  for (const [asked, sentences] of cases) expect(sentencesAsked(asked)).toEqual(sentences);
});
