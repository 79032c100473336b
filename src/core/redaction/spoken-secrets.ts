/**
 * Finds secrets that people read aloud, type or write on paper: one-time codes, recovery codes, the words of a wallet,
 * card numbers. A card number is recognised by its check digit, each of the others by a word before it.
 */

import { endOfMatch, type FoundAll, type Stretch } from './secret-rule.ts';

const CODE_LEAD =
  /["'`*]{0,3}(?:[^\d\n[\]:=]{0,40}?(?:[:=]|\b(?:is|was|are|ist)\b)[ \t"'`*#]{0,6}|[ \t]{1,2})/y;
const CODE =
  /(?:[A-Z]-)?(?:\d{3}[ -]\d{3}|\d{4}[ -]\d{4}|\d\d(?: \d\d){2,3}|\d{4,8})(?![\w%]|[.,]\d|-\d| \d{1,2} [a-z])/y;

/** Finds the code after "OTP", "verification code" and similar words. */
export function findCodes(headEnd: number, text: string): FoundAll {
  const leadEnd = endOfMatch(CODE_LEAD, text, headEnd);
  if (leadEnd === undefined) return nothingAt(headEnd);
  const end = endOfMatch(CODE, text, leadEnd);
  if (end === undefined) return nothingAt(headEnd);
  // "pin 1234" may be a pin on a circuit board; with a colon or a verb it is a secret.
  const isBare = text.slice(headEnd, leadEnd).trim() === '';
  const isAmbiguous = /(?:pin|tan)$/i.test(text.slice(Math.max(0, headEnd - 3), headEnd));
  if (isBare && isAmbiguous) return nothingAt(headEnd);
  return { secrets: [{ start: leadEnd, end }], end };
}

const LIST_LEAD = /["'`*]{0,3}[^\n:=[\]]{0,60}?(?:[:=]|\n|\bare\b)/y;
const LIST_MARK = /(?:[\s,;"'`*•|-]|\d{1,2}[.)](?=\s)){1,24}/y;
const LIST_CODE = /[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,5}(?![\w-])/y;
const RECOVERY_CODES_MAX = 24;

/** Finds the codes that follow "recovery codes:". */
export function findRecoveryCodes(headEnd: number, text: string): FoundAll {
  const secrets: Stretch[] = [];
  let at = endOfMatch(LIST_LEAD, text, headEnd);
  while (at !== undefined && secrets.length < RECOVERY_CODES_MAX) {
    const start: number = endOfMatch(LIST_MARK, text, at) ?? at;
    const end = endOfMatch(LIST_CODE, text, start);
    if (end === undefined || end - start < 6 || !/\d/.test(text.slice(start, end))) break;
    secrets.push({ start, end });
    at = end;
  }
  return { secrets, end: at ?? headEnd };
}

const WORDS_LEAD =
  /["'`*]{0,3}[ \t]{0,2}(?:\([^()\n]{0,20}\)[ \t]{0,2})?(?:[:=]|is|was)[\s"'`*]{0,6}/y;
const SEED_WORD = /(?:\d{1,2}[.)][ \t]{0,2})?[a-z]{3,8}(?=[\s,"'`.;]|$)/y;
const SEED_GAP = /(?:,[ \t]?|[ \t]{1,2}|\n[ \t]{0,8})/y;
const SEED_COUNTS = new Set([12, 15, 18, 21, 24]);
/** Matches words that are not in BIP 39's list: a text with one of them is a sentence. */
const SENTENCE_WORDS =
  /\b(?:the|and|for|are|not|with|your|from|have|has|will|which|into|them|should|but)\b/;

/** Finds a wallet's words: as many as the standard allows, and no sentence. */
export function findSeedWords(headEnd: number, text: string): FoundAll {
  const start = endOfMatch(WORDS_LEAD, text, headEnd);
  if (start === undefined) return nothingAt(headEnd);
  let end = start;
  let count = 0;
  for (let at: number | undefined = start; at !== undefined && count <= 24;) {
    const wordEnd: number | undefined = endOfMatch(SEED_WORD, text, at);
    if (wordEnd === undefined) break;
    count += 1;
    end = wordEnd;
    // A phrase on a single line ends with that line; with one word per line it continues.
    const isWhole = SEED_COUNTS.has(count) && !text.slice(start, wordEnd).includes('\n');
    at = isWhole && text.charAt(wordEnd) === '\n' ? undefined : endOfMatch(SEED_GAP, text, wordEnd);
  }
  if (!SEED_COUNTS.has(count) || SENTENCE_WORDS.test(text.slice(start, end))) {
    return nothingAt(headEnd);
  }
  return { secrets: [{ start, end }], end };
}

const CARD = /\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)/y;
const CARD_FORM =
  /^(?:4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[068]\d{12}|35\d{14}|6(?:011|5\d\d|4[4-9]\d|2\d\d)\d{12})$/;
/** Matches card numbers as printed: groups of four, or of four, six and five digits. */
const CARD_GROUPS = /^(?:\d{13,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5})$/;

/** Finds a card number that begins at `headEnd`. */
export function findCards(headEnd: number, text: string): FoundAll {
  const end = endOfMatch(CARD, text, headEnd);
  if (end === undefined) return nothingAt(headEnd);
  const printed = text.slice(headEnd, end);
  const digits = printed.replaceAll(/[ -]/g, '');
  if (!CARD_GROUPS.test(printed) || !CARD_FORM.test(digits) || !hasCheckDigit(digits)) {
    return nothingAt(headEnd);
  }
  return { secrets: [{ start: headEnd, end }], end };
}

/** Checks a number by Luhn: every second digit from the right counts twice, and the sum of digits ends in 0. */
function hasCheckDigit(digits: string): boolean {
  let sum = 0;
  for (let at = 0; at < digits.length; at += 1) {
    const digit = Number(digits.charAt(digits.length - 1 - at));
    const weighted = at % 2 === 0 ? digit : digit * 2;
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return sum % 10 === 0;
}

function nothingAt(end: number): FoundAll {
  return { secrets: [], end };
}
