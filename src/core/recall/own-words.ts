import { EVERYDAY_WORDS } from './relevance.ts';
import { sentencesOf } from './sentences.ts';
import { hasTerms, termsOf } from './terms.ts';

/**
 * Separates the user's own words in a prompt from pasted text. Half of a prompt to an agent may be pasted output.
 * Other prompts only answer the agent's question ("yes", "9", "option 2 seems best").
 */

/**
 * A paragraph repeats an earlier one if it begins with the earlier one's first 40 characters. A prompt that was
 * edited and sent again has both versions. Paragraphs of under 20 characters may begin alike by chance.
 */
const REPEAT_CHARS = 40;
const REPEAT_CHARS_MIN = 20;

// Matches pasted lines: quotes, shell prompts, frames of a terminal, stack traces, compiler messages, indented code.
// A list item may be indented.
const PASTED_LINE = /^\s*(?:[>⏺⎿│╰❯$|]|at \S|[\w./-]+:\d+:)|^\s{2,}(?![-*•] )\S/;
/** Matches a changed line of a diff. It counts only in a diff, because an item of a user's list looks the same. */
const DIFF_LINE = /^[+-]{1,3}(?:\s|$)/;
/** Matches the header of a file or hunk in a diff. */
const DIFF = /^(?:diff --git |@@ |\+\+\+ \S|--- \S)/m;
/** Matches the sign with which a client shows a typed prompt. Users paste it together with the prompt. */
const TYPED = /^\s*❯ /;
const ADDRESS_OR_PATH = /https?:\/\/\S+|(?:\/[\w.-]+){2,}/g;

/** Returns the prompt without pasted lines, addresses, absolute paths and the repeat of an edited prompt. */
export function ownWordsOf(prompt: string): string {
  return ownLinesOf(prompt).replaceAll(ADDRESS_OR_PATH, ' ');
}

/** Returns the lines that the user typed. They keep addresses and paths, because svc quotes whole sentences. */
export function ownLinesOf(prompt: string): string {
  const kept: string[] = [];
  for (const block of withoutQuotes(prompt).split(/\n{2,}/)) {
    const isRepeat = kept.some(
      (other) => other.length >= REPEAT_CHARS_MIN && block.startsWith(other.slice(0, REPEAT_CHARS)),
    );
    if (!isRepeat) kept.push(block);
  }
  const lines = kept.join('\n').replace(TYPED, '').split('\n');
  const isDiff =
    DIFF.test(prompt) ||
    (lines.some((line) => /^\+\s/.test(line)) && lines.some((line) => /^-\s/.test(line)));
  return lines
    .filter((line) => !PASTED_LINE.test(line) && !(isDiff && DIFF_LINE.test(line)))
    .join('\n');
}

/**
 * Removes the quotation marks that `opencode run` puts around an argument with a space, and its backslashes in front of
 * quotation marks inside. The first and the last sentence would each have an unpaired mark and look like pieces of a
 * quotation.
 */
function withoutQuotes(prompt: string): string {
  const quoted = prompt.trim();
  const inner = quoted.slice(1, -1);
  const isOneArgument =
    quoted.startsWith('"') && quoted.endsWith('"') && !/(?<!\\)"|\\$/.test(inner);
  return isOneArgument ? inner.replaceAll('\\"', '"') : prompt;
}

const HEADING = /^ {0,3}#{1,6}\s+(.+)$/;

/**
 * Returns the sentences that may name the subject of a request. If the request begins with a pasted document
 * ("Implement the following plan:" and a heading), it returns only the document's heading. Other headings are mere
 * labels, so it leaves them out.
 */
export function sentencesAsked(asked: string): string[] {
  const lines = ownLinesOf(asked)
    .split('\n')
    .filter((line) => line.trim() !== '');
  const begin = lines.slice(0, /[:：]\s*$/.test(lines[0] ?? '') ? 2 : 1);
  const heading = HEADING.exec(begin.at(-1) ?? '')?.[1];
  if (heading !== undefined) return [heading];
  return sentencesOf(lines.filter((line) => !HEADING.test(line)).join('\n'));
}

/** Stems of words that only steer a session ("approve", "commit", "yup") and are not in EVERYDAY_WORDS. */
const STEERING_WORDS: ReadonlySet<string> = new Set(
  `agre ahead approv button choic choos commit confirm correct done draft els enter exact finish fine
  got guess hmm lgtm mayb merg never perfect pick prefer proceed pr push readi recommend respons right
  second seem send ship skip sound stage suggest sur third thx trust won wrong yea yup`.split(
    /\s+/,
  ),
);

/** A prompt with fewer informative words names no subject. */
const TELLING_WORDS_MIN = 2;
/** Matches a number that answers a menu. A number of three or more digits names a ticket, a port or an error. */
const MENU_NUMBER = /^\d{1,2}$/;

/** Says whether a sentence only answers or steers: "yes", "commit", "9", "option 2 seems best". */
export function isReply(ownWords: string): boolean {
  return tellsLess(ownWords, TELLING_WORDS_MIN);
}

/** Says whether a text has fewer than `most` distinct informative words. */
function tellsLess(ownWords: string, most: number): boolean {
  return !hasTerms(ownWords, most, isTelling);
}

/** Matches the opening of an answer to the agent: consent, the number of a choice, or the only item of a list. */
const ANSWERING =
  /^\s*(?:(?:yes|yeah|yep|yup|sure|ja|oui|sí|да)(?![\p{L}\p{N}'’])|はい|是的|好的|\d{1,2}\. (?![\s\S]*\n\s*\d{1,2}[.)]\s)|(?:(?:choice|number|option) |#)?\d{1,2}(?=\s*(?:$|[,;–—]|(?:and|but|for now|is|looks?|or|please|seems?|sounds?|then)\b)))/iu;
/** An answer with at least so many informative words asks for something of its own. */
const ANSWER_WORDS_MIN = 6;

/**
 * Says whether a prompt is only a reply to the agent. A prompt that begins with consent or a choice may have a few
 * informative words more than a sentence that is a reply: "5 seems like a low hanging fruit".
 */
export function isReplyPrompt(ownWords: string): boolean {
  return tellsLess(ownWords, ANSWERING.test(ownWords) ? ANSWER_WORDS_MIN : TELLING_WORDS_MIN);
}

/**
 * Says whether a prompt answers the agent or steers it. Unlike isReplyPrompt(), it is false for "hello" and "continue".
 * It is also false for a prompt with one word that may name a subject ("What port does staging run on?"), unless the
 * prompt begins like an answer.
 */
export function isAnswer(ownWords: string): boolean {
  if (ANSWERING.test(ownWords)) return tellsLess(ownWords, ANSWER_WORDS_MIN);
  return tellsLess(ownWords, 1) && termsOf(ownWords).some(steers);
}

/** Says whether a term is informative, so that it may name a subject: it neither is an everyday word nor steers. */
export function isTelling(term: string): boolean {
  return !EVERYDAY_WORDS.has(term) && !steers(term);
}

function steers(term: string): boolean {
  return STEERING_WORDS.has(term) || MENU_NUMBER.test(term);
}
