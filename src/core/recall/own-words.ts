import { EVERYDAY_WORDS } from './relevance.ts';
import { sentencesOf } from './sentences.ts';
import { termsOf } from './terms.ts';

/**
 * Extracts the words with which a prompt asks something. A prompt to an agent is often half pasted output, and often
 * only an answer to the agent's question ("yes", "9", "option 2 seems best").
 */

/** Characters by which the beginnings of two paragraphs are compared: an edited prompt repeats its beginning. */
const REPEAT_CHARS = 40;
const REPEAT_CHARS_MIN = 20;

// Matches pasted lines: quotes, shell prompts, frames of a terminal, stack traces, compiler messages, indented code.
// A list item may be indented.
const PASTED_LINE = /^\s*(?:[>⏺⎿│╰❯$|]|at \S|[\w./-]+:\d+:)|^\s{2,}(?![-*•] )\S/;
/** Tells a diff from a user's list, which has single marks and no header of a file or hunk. */
const DIFF_LINE = /^[+-]{1,3}(?:\s|$)/;
const DIFF = /^(?:diff --git |@@ |\+\+\+ \S|--- \S)/m;
/** Matches the prompt sign with which a client shows typed text; users paste it back. */
const TYPED = /^\s*❯ /;
const ADDRESS_OR_PATH = /https?:\/\/\S+|(?:\/[\w.-]+){2,}/g;

/** Returns the prompt without pasted lines, addresses, absolute paths and the repeat of an edited prompt. */
export function ownWordsOf(prompt: string): string {
  return ownLinesOf(prompt).replaceAll(ADDRESS_OR_PATH, ' ');
}

/** Returns the user's own lines, with addresses and paths, because a sentence is quoted whole. */
export function ownLinesOf(prompt: string): string {
  const kept: string[] = [];
  for (const block of prompt.split(/\n{2,}/)) {
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

/** Matches a heading of Markdown. */
const HEADING = /^ {0,3}#{1,6}\s+(.+)$/;
/** Matches a label in front of the subject: "Plan: ". */
const HEADING_LABEL = /^(?:\p{L}+ )?(?:bug|feature|issue|plan|spec|task)(?: \d+)?: /iu;
/** Matches the opening of a template: it gives the agent a role, and says nothing of the project. */
const ROLE = /^\s*you are (?:an?|the) /i;

/**
 * Returns the sentences of a request that may say what it is about. For a pasted document ("Implement the following
 * plan:" and a heading) that is its heading alone. Other headings are labels, and left out.
 */
export function sentencesAsked(asked: string): string[] {
  if (ROLE.test(asked)) return [];
  const lines = ownLinesOf(asked)
    .split('\n')
    .filter((line) => line.trim() !== '');
  const begin = lines.slice(0, /[:：]\s*$/.test(lines[0] ?? '') ? 2 : 1);
  const heading = HEADING.exec(begin.at(-1) ?? '')?.[1];
  if (heading !== undefined) return [heading.replace(HEADING_LABEL, '')];
  return sentencesOf(lines.filter((line) => !HEADING.test(line)).join('\n'));
}

/** Stems of words that steer a session and name no subject, besides those of everyday work. */
const STEERING_WORDS: ReadonlySet<string> = new Set(
  `agre ahead approv button choic choos commit confirm correct done draft els enter exact finish fine
  got guess hmm lgtm mayb merg never perfect pick prefer proceed pr push readi recommend respons right
  second seem send ship skip sound stage suggest sur third thx trust won wrong yea yup`.split(
    /\s+/,
  ),
);

/** Fewest informative words with which the subject of a prompt is known. */
const TELLING_WORDS_MIN = 2;
/** A number alone answers a menu. One of three or more digits names a ticket, a port or an error. */
const MENU_NUMBER = /^\d{1,2}$/;

/** Says whether a prompt only answers or steers: "yes", "commit", "9", "option 2 seems best". */
export function isReply(ownWords: string): boolean {
  const telling = new Set<string>();
  for (const term of termsOf(ownWords)) {
    if (isTelling(term)) telling.add(term);
    if (telling.size >= TELLING_WORDS_MIN) return false;
  }
  return true;
}

/** Says whether a term names something: it is neither everyday work nor steering. */
export function isTelling(term: string): boolean {
  return !EVERYDAY_WORDS.has(term) && !STEERING_WORDS.has(term) && !MENU_NUMBER.test(term);
}
