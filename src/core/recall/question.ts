import { asksForNow, asksForTime, datesIn, isTimeWord, type Span, spanIn } from './dates.ts';
import { asksWithoutSign, isGrammar, readWording } from './language.ts';
import { readTerms, termsOf } from './terms.ts';

/**
 * A question to the memory: the terms of the user's words. It also has terms of the assistant's last words, for a
 * prompt that names no subject ("ok, do it").
 */
export interface Question {
  /** The distinct search terms of the prompt, in the order in which they first occur. */
  readonly human: readonly string[];
  /**
   * Whole forms of compounds, such as `memoryMode`; their parts are in `human`. They count in the ranking, but a
   * passage need not have them to be relevant.
   */
  readonly humanWholes: readonly string[];
  /** The distinct search terms of the assistant's last text that the prompt does not have. */
  readonly assistant: readonly string[];
  /** Adjacent words of the user's text, as `first second`. */
  readonly pairs: ReadonlySet<string>;
  readonly asksWhen: boolean;
  /** True if the question is about how things are, not about how they were. */
  readonly asksForNow: boolean;
  readonly dates: readonly string[];
  /** The days that the question names. */
  readonly span: Span | undefined;
  /** Terms that name a date: they say when, not what. */
  readonly dateTerms: ReadonlySet<string>;
  /** Terms that only form the question, so that matching them proves nothing. */
  readonly asking: ReadonlySet<string>;
  /** Terms of proper names, without dates. */
  readonly names: ReadonlySet<string>;
  /** True if the text asks for knowledge: a question, or "list …", "explain …". False for "fix the test". */
  readonly isQuestion: boolean;
}

/** Bound on the characters that are read of a prompt, half at each end: the middle is mostly a pasted file or log. */
const TEXT_CHARS_MAX = 8192;
/** Bound on terms, because each may cost one look-up of its frequency. */
const HUMAN_TERMS_MAX = 48;
const ASSISTANT_TERMS_MAX = 24;

/** Reads the question. `now`: milliseconds since 1970, for "yesterday". */
export function readQuestion(humanText: string, assistantText: string, now: number): Question {
  const text = endsOf(humanText);
  const { words, wholes } = readTerms(text);
  const human = distinct(words).slice(0, HUMAN_TERMS_MAX);
  const known = new Set([...human, ...wholes]);
  const span = spanIn(text, now);
  const dates = datesIn(human);
  const { asking, names } = readWording(text);
  const onlyAsking = human.filter((term) => asking.has(term) || isGrammar(term));
  const said = distinct(readTerms(endsOf(assistantText)).words);
  return {
    human,
    humanWholes: distinct(wholes)
      .filter((whole) => !human.includes(whole))
      .slice(0, HUMAN_TERMS_MAX),
    assistant: said.filter((term) => !known.has(term)).slice(-ASSISTANT_TERMS_MAX),
    pairs: new Set(words.slice(1).map((word, index) => `${words[index] ?? ''} ${word}`)),
    asksWhen: asksForTime(text),
    asksForNow: asksForNow(text),
    dates,
    span,
    dateTerms: new Set([...dates, ...termsOf(span?.words ?? '')]),
    asking: onlyAsking.length < human.length ? new Set(onlyAsking) : new Set(),
    names: new Set(human.filter((term) => names.has(term) && !isTimeWord(term))),
    isQuestion: asksToKnow(text),
  };
}

const ASKING =
  /[?？]|^\W*(?:who|whose|what|when|where|which|why|how|did|do|does|is|are|was|were|has|have|had|tell|remind|remember|recall|explain|describe|summari[sz]e|list|show)\b/i;

function asksToKnow(text: string): boolean {
  return ASKING.test(text) || asksWithoutSign(text);
}

function endsOf(text: string): string {
  if (text.length <= TEXT_CHARS_MAX) return text;
  const half = TEXT_CHARS_MAX / 2;
  const [head, tail] = [text.slice(0, half), text.slice(-half)];
  // Cut at a space: half a word would be a rare term and count too much.
  return `${head.slice(0, head.lastIndexOf(' '))}\n${tail.slice(tail.indexOf(' '))}`;
}

function distinct(terms: readonly string[]): string[] {
  return [...new Set(terms)];
}
