import { expect, test } from 'vitest';
import { announcesStep } from '../../src/core/memory/next-steps.ts';

test.each([
  'let me look at the tests.',
  'good — now let me see.',
  'ok, great! so next, i’ll quickly go ahead and check the build:',
  "and also we'll re-run it.",
  'i also want to double-check the index.',
  'now i understand how it is stored.',
  'now, for the second file:',
  'next: fix the port.',
  'running the migration.',
  'hmm… i have a complete picture.',
  'jetzt schaue ich mir die tests an.',
  'ahora voy a leer el archivo.',
  'maintenant, je vais vérifier.',
])('%s is a next step', (sentence) => {
  expect(announcesStep(sentence)).toBe(true);
});

test.each([
  'let me know which one you want.',
  'let me explain why it failed.',
  'let me 42.',
  'good —————— let me see.',
  'ok, ok, ok, let me see.',
  'now documented in the readme.',
  'i will not.',
  'the tests are adding up.',
  'runningly fast.',
  'the port is 6432.',
  'also formatted.',
])('%s is none', (sentence) => {
  expect(announcesStep(sentence)).toBe(false);
});
