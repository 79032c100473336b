import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

// Plain English in comments: a sentence names its subject first. "What …" and "Of …" make the reader
// search for it.

const root = join(import.meta.dirname, '..');
const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path))
  .map((path) => join('src', path));
const HEADLESS = /^(?:What|Of) /;
/**
 * Each has a plain term: continues, again, is or remains valid, or the name of the caller. A stub may
 * stand for an output. A quoted word is a value of the code.
 */
const VAGUE =
  /(?<!')\b(?:anew|go(?:es)? on|went on|nobody|somebody|whoever|(?:stands?|stood)(?!-| for\b))\b(?!')/i;

test('a comment that begins headless is found on every kind of line', () => {
  const text = [
    '// What is kept.',
    '/** Of the body. */',
    '/**',
    ' * A cache. What is older goes;',
    ' * the rest stays.',
    ' */',
    'const a = 1; // Of one.',
    '// oxlint-disable-next-line no-await-in-loop -- What came first.',
  ].join('\n');
  expect(sentencesOf(text).filter(isHeadless)).toHaveLength(5);
});

test('questions, strings and whole sentences are none', () => {
  const text = [
    '// What does it keep?',
    "const a = 'What is kept.'; // The rest of it. Offset of the value.",
    '/** The store says what it holds. */',
  ].join('\n');
  expect(sentencesOf(text).filter(isHeadless)).toEqual([]);
});

test('no sentence of a comment begins with a headless "What" or "Of"', () => {
  const found = sources.flatMap((path) =>
    sentencesOf(readFileSync(join(root, path), 'utf8'))
      .filter(isHeadless)
      .map((sentence) => `${path}: ${sentence}`),
  );
  expect(found).toEqual([]);
});

test('a vague word is found, and a term that only looks like one is none', () => {
  const found = [
    'Nobody asks.',
    'For whoever reads it.',
    'The lease stands.',
    'It is read anew.',
    'A run that goes on.',
    'It went on.',
  ];
  const none = [
    'A stub stands for it.',
    "'nobody': no terminal.",
    'The stand-in provider.',
    'A standby.',
  ];
  expect(found.filter((sentence) => VAGUE.test(sentence))).toEqual(found);
  expect(none.filter((sentence) => VAGUE.test(sentence))).toEqual([]);
});

test('comments say continues, again, remains valid or who acts, and not goes on, anew, stands or nobody', () => {
  const found = sources.flatMap((path) =>
    sentencesOf(readFileSync(join(root, path), 'utf8'))
      .filter((sentence) => VAGUE.test(sentence))
      .map((sentence) => `${path}: ${sentence}`),
  );
  expect(found).toEqual([]);
});

function isHeadless(sentence: string): boolean {
  return HEADLESS.test(sentence) && !sentence.endsWith('?');
}

function sentencesOf(source: string): string[] {
  return commentsOf(source).flatMap((comment) =>
    comment.split(/(?<=[.!?:;])\s+| -- |\n\n/).map((sentence) => sentence.trim()),
  );
}

/** Comment lines that follow each other are one text: a sentence may go on in the next line. */
function commentsOf(source: string): string[] {
  const comments: string[] = [];
  let open: string[] = [];
  for (const line of source.split('\n')) {
    const [, own] = /^\s*(?:\/\*\*?|\*\/|\*|\/\/)(?!\/)\s?(.*?)(?:\*\/)?$/.exec(line) ?? [];
    const [, trailing] = /[;,{(]\s+\/\/ (.*)$/.exec(line) ?? [];
    if (own !== undefined) open.push(own.trim());
    else {
      comments.push(open.join('\n').replaceAll(/(?<!\n)\n(?!\n)/g, ' '));
      open = trailing === undefined ? [] : [trailing];
    }
  }
  return [...comments, open.join(' ')];
}
