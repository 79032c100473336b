import { expect, test } from 'vitest';
import { speaksOfThePast } from '../../src/core/recall/past.ts';

test.each([
  "I'm pretty sure we had this before: the reachable commits of main",
  'we fixed the same deadlock last week, can you look?',
  'name the flags as last time',
  'use the same header as yesterday',
  'yesterday we talked about the retry queue',
  "we've been through this before, the lock is taken twice",
  'I told you a while ago how the invoices are rounded',
  'mach es wie letztes Mal',
  'hatten wir das schon mit dem Dekoder?',
  'hazlo como la última vez',
  'сделай как в прошлый раз',
  '像上次一样部署',
])('a prompt that says that there is a past: %s', (prompt) => {
  expect(speaksOfThePast(prompt)).toBe(true);
});

test.each([
  'run the tests again',
  'fix it again',
  'we use the lock before we write',
  'did you run the linter before you committed?',
  'close the other session',
  'make the list earlier in the page',
  'remember to zero the key',
  'do you remember which service keeps the logs?',
  'the last commit broke the build',
  'show the previous conversation in the list',
  'prevent this from happening again',
])('a prompt that means this session, or the program: %s', (prompt) => {
  expect(speaksOfThePast(prompt)).toBe(false);
});

test('a prompt of a megabyte is read in one go', () => {
  const long = 'we have had this and that, as '.repeat(35_000);
  expect(speaksOfThePast(long)).toBe(false);
});
