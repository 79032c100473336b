import { createHash } from 'node:crypto';
import type { CaptureItem } from '../../../src/core/memory-api/contract.ts';
import { objectOfItem } from '../../../service/src/core/objects.ts';
import { recordBytes, recordOfText } from '../../../src/core/memory-api/canonical.ts';
import { contentDigest } from '../../../src/core/memory/reference.ts';
import type { NewObject } from '../../../service/src/ports/service-store.ts';

/** Texts of words that come as often as words of a language do: a few often, most of them seldom. */

const VOCABULARY = 30_000;
const CONSONANTS = 'bdfgklmnprst';
const VOWELS = 'aeiou';
/** With these a word has five letters on the average, as in English. */
const ENDINGS = 'nrst';

let state = 1;

/**
 * The same numbers in every run: a linear congruential generator whose period is 2^32 (Numerical Recipes).
 * A product of two such numbers is no exact float, so it needs the multiplication of 32 bits.
 */
function random(): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return state / 4_294_967_296;
}

export function seed(value: number): void {
  state = value;
}

function wordOf(number: number): string {
  let [text, rest] = ['', number];
  do {
    text += letterOf(CONSONANTS, rest) + letterOf(VOWELS, Math.floor(rest / CONSONANTS.length));
    rest = Math.floor(rest / (CONSONANTS.length * VOWELS.length));
  } while (rest > 0);
  return text + letterOf(ENDINGS, number);
}

function letterOf(letters: string, number: number): string {
  return letters.charAt(number % letters.length);
}

/** By Zipf's law: the word of rank n comes 1/n times as often as the first. */
export function drawWord(): string {
  return wordOf(Math.floor(VOCABULARY ** random()) - 1);
}

export function textOf(words: number): string {
  return Array.from({ length: words }, drawWord).join(' ');
}

let count = 0;

/** A record of one text of so many words, as a client sends it; 350 are 2 kB and six passages. */
export function newItem(words: number): CaptureItem {
  count += 1;
  const record = recordOfText(count % 2 === 0 ? 'assistant' : 'user', textOf(words));
  const bytes = recordBytes(record) ?? Buffer.alloc(0);
  return {
    digest: contentDigest(bytes),
    bytes: bytes.length,
    record,
    observed_at: new Date(1_700_000_000_000 + count * 1000).toISOString(),
    position: Math.floor(count / 2) % 1000,
    session_id: createHash('sha256')
      .update(String(Math.floor(count / 200)))
      .digest('hex')
      .slice(0, 16),
  };
}

/** What the service makes of it. */
export function objectOf(item: CaptureItem): NewObject {
  const object = objectOfItem(item, '');
  if (typeof object === 'string') throw new Error(object);
  return object;
}
