import { estimateTextTokens } from '../bytes/tokens.ts';
import { type Answer, conclusionLines, firstTold, plainLine, type Quote } from './conclusions.ts';
import { saysNothing } from './saying.ts';
import { isPiece, sentencesOf } from './sentences.ts';
import { isTelling } from './own-words.ts';
import type { Action } from './second-look.ts';
import { readTerms, termsOf } from './terms.ts';

/**
 * Finds lines of earlier exchanges about what an agent is doing now: a file that it opens, a name that it searches
 * for, or an error that it gets. A line counts only if it contains the name itself, or most words of the error. So a
 * second look (see second-look.ts) that finds nothing certain returns nothing.
 */

/** A file, a name or an error from an agent's action, for which recall looks in the memory. */
export interface Cue {
  /** The text as written: the last parts of a path, a name, or a line with an error. */
  readonly text: string;
  readonly kind: 'file' | 'name' | 'error';
  /** The cue's terms in the index; for an error, only its informative ones. */
  readonly terms: readonly string[];
  /** The whole forms of the cue's compounds in the index (see terms.ts); empty for an error. */
  readonly wholes: readonly string[];
}

/** Bound on cues: each costs a look-up in the index. */
const CUES_MAX = 24;

/** Matches file names that occur in many folders, so that only the folder tells them apart. */
const COMMON_FILE =
  /^(?:index|main|mod|lib|init|__init__|setup|config|types?|utils?|helpers?|constants|common|skill|metadata|settings|test|tests|app|server|client|readme|package|makefile|dockerfile|changelog|claude|agents|license)\b/i;

/**
 * Returns at most CUES_MAX cues of an action, each once, errors first. Cues in the prompt are left out: the recall for
 * the prompt has searched for them. So are errors with fewer than ERROR_TERMS_MIN informative terms, and other cues
 * without one.
 */
export function cuesOf({ files, names, errors }: Action, prompt: string): readonly Cue[] {
  const cues = [
    ...errors.map((text) => ({ kind: 'error' as const, text })),
    ...files.map((text) => ({ kind: 'file' as const, text: endOfPath(text) })),
    ...names.map((text) => ({ kind: 'name' as const, text })),
  ];
  const seen = new Set<string>();
  return cues
    .filter(({ text }) => !seen.has(text) && seen.add(text) && !prompt.includes(text))
    .map(({ kind, text }) => ({ kind, text, ...termsOfCue(kind, text) }))
    .filter(({ kind, terms }) => terms.length >= (kind === 'error' ? ERROR_TERMS_MIN : 1))
    .slice(0, CUES_MAX);
}

/** Fewest informative terms of an error line: fewer do not identify the error. */
const ERROR_TERMS_MIN = 3;

function endOfPath(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return COMMON_FILE.test(name) ? path.split('/').slice(-2).join('/') : name;
}

/** Matches numbers and folders in an error line, which differ each time. */
const VARYING = /(?:\/[\w.@-]+){2,}\/|\b\d[\d.:]*\b|0x[\da-f]+/gi;

function termsOfCue(kind: Cue['kind'], text: string): Pick<Cue, 'terms' | 'wholes'> {
  if (kind !== 'error') {
    const { words, wholes } = readTerms(text);
    return { terms: [...new Set(words)], wholes };
  }
  const { words } = readTerms(text.replaceAll(VARYING, ' '));
  return { terms: [...new Set(words.filter(isTelling))], wholes: [] };
}

/**
 * Estimates how many passages mention the file, name or error: those with its whole form, or else with its rarest
 * term.
 */
export function frequencyOf(cue: Cue, frequency: (term: string) => number): number {
  const least = Math.min(...cue.terms.map(frequency));
  const whole = Math.max(0, ...cue.wholes.map(frequency));
  return least === 0 || whole === 0 ? least : whole;
}

/** Returns the passages that state something about a cue of the action, for a memory that returns no exchanges. */
export function passagesAbout<Passage extends { readonly text: string }>(
  passages: readonly Passage[],
  action: Action,
  prompt: string,
): readonly Passage[] {
  const cues = cuesOf(action, prompt);
  return passages.filter(({ text }) => {
    const terms = new Set(termsOf(text));
    return STATES.test(text) && cues.some((cue) => speaksOf(text, terms, cue));
  });
}

/** A cue, with the value that it adds to a line's score. */
export interface ValuedCue extends Cue {
  readonly value: number;
}

interface ToldLine extends Quote {
  readonly terms: ReadonlySet<string>;
  readonly cues: readonly ValuedCue[];
}

/** Matches words with which people and models state a cause, a decision, a rule or a trap. */
const STATES =
  /\b(?:root cause|because|caused by|due to|reason|bug|race condition|regression|breaks?|instead|rather than|decid\w+|chose|prefer\w*|never|must(?:n['’]t)?|always|don['’]t|do(?:es)? not|doesn['’]t|cannot|can['’]t|won['’]t|should(?:n['’]t)?|require[sd]?|intentional\w*|deliberate\w*|on purpose|by design|workaround|gotcha|careful|turns out|otherwise|unless|no longer|so that|to avoid|prevents?)\b/i;
/**
 * Matches lines that mostly say no more than the files do: lists of changed files, table rows, positions, logs, code,
 * announcements, questions.
 */
const SAYS_NOTHING =
  /\([+-]\d+|^\W*[\w./@-]+\W*(?::\d+)?\W*$|^\W*(?:files?|line|location)\W|\.\w+:\d+:\d+|\d\d:\d\d:\d\d|\|.*\||^\S+ \| |[{;]\s*$|^(?:let me|i['’]ll|now|good|great|perfect|done\W*$|all tests)|^[{[]|https?:\/\/\S+$|[?？:]\s*$/i;
/** Fewest informative terms of a quoted line, besides those of its cues. */
const TELLING_MIN = 4;
const LINE_CHARS_MAX = 600;

/** Returns the lines of an exchange that state something about a cue. */
function linesAbout(spoken: Spoken, cues: readonly ValuedCue[]): readonly ToldLine[] {
  const held = cues.filter((cue) => cue.kind === 'error' || mentions(spoken, cue));
  if (held.length === 0) return [];
  const asked = sentencesOf(spoken.asked).map(plainLine);
  return [
    ...toldIn('user', asked, held),
    ...firstTold(spoken, (part, isTold) =>
      toldIn('assistant', conclusionLines(part).filter(isTold), held),
    ),
  ];
}

function toldIn(
  role: Quote['role'],
  lines: readonly string[],
  held: readonly ValuedCue[],
): readonly ToldLine[] {
  return lines.flatMap(fittingParts).flatMap((text): ToldLine[] => {
    if (text.length > LINE_CHARS_MAX || !STATES.test(text) || SAYS_NOTHING.test(text)) return [];
    const terms = new Set(termsOf(text));
    const told = held.filter((cue) => speaksOf(text, terms, cue));
    return told.length === 0 ? [] : [{ role, text, terms, cues: told }];
  });
}

/**
 * Returns a line if it is short enough to be quoted whole, or else its sentences that are short enough and make sense
 * by themselves.
 */
function fittingParts(line: string): readonly string[] {
  if (estimateTextTokens(line) <= QUOTE_TOKENS_MAX) return [line];
  return sentencesOf(line).filter(
    (one) => estimateTextTokens(one) <= QUOTE_TOKENS_MAX && !saysNothing(one) && !isPiece(one),
  );
}

/** Least share of an error's terms that a line must contain to be about the same error. */
const ERROR_SHARE = 0.7;

function speaksOf(line: string, held: ReadonlySet<string>, { kind, text, terms }: Cue): boolean {
  if (kind === 'error') {
    return terms.filter((term) => held.has(term)).length >= ERROR_SHARE * terms.length;
  }
  let at = line.indexOf(text);
  while (at !== -1) {
    if (!isWordPart(line[at - 1]) && !isWordPart(line[at + text.length])) return true;
    at = line.indexOf(text, at + 1);
  }
  return false;
}

/** Says whether a character beside the text of a cue belongs to the same word, so that the line has a longer name. */
function isWordPart(character: string | undefined): boolean {
  return character !== undefined && /[\w-]/.test(character);
}

interface Spoken extends Answer {
  readonly asked: string;
}

/** For each term of the prompt, or of the text around it, the value that it adds to a line's score. */
export type ContextValues = ReadonlyMap<string, number>;

export interface Told<Texts> {
  readonly texts: Texts;
  readonly quotes: readonly Quote[];
}

const EXCHANGES_MAX = 2;
const QUOTE_TOKENS_MAX = 60;

/**
 * Returns at most EXCHANGES_MAX exchanges, each with its best line about the files, names and errors (`cues`), best
 * first. Empty if no line scores high enough.
 */
export function tellAbout<Texts extends Spoken & { readonly at: number }>(
  exchanges: readonly Texts[],
  cues: readonly ValuedCue[],
  context: ContextValues,
): readonly Told<Texts>[] {
  const rare = cues.map((cue) => {
    const holders = exchanges.filter((one) => mentions(one, cue)).length;
    const weight = cue.kind === 'error' ? ERROR_WEIGHT : 1 / Math.sqrt(Math.max(1, holders));
    return { ...cue, value: weight * cue.value };
  });
  const told = exchanges.map((texts) => ({ texts, lines: linesAbout(texts, rare) }));
  return told
    .flatMap(({ texts, lines }) => {
      const scored = lines.map((line) => ({ line, score: scoreOf(line, context) }));
      const [best] = scored.toSorted((one, other) => other.score - one.score);
      return best === undefined || best.score < SCORE_MIN ? [] : [{ texts, ...best }];
    })
    .toSorted((one, other) => other.score - one.score || other.texts.at - one.texts.at)
    .slice(0, EXCHANGES_MAX)
    .map(({ texts, line: { role, text } }) => ({
      texts,
      quotes: [{ role, text }],
    }));
}

/**
 * Scores a line. 0 if it may be about other work: its cues are too common, it says little besides them, or its only cue
 * is no error and it shares little with the prompt.
 */
function scoreOf({ cues, terms }: ToldLine, context: ContextValues): number {
  const named = cues.reduce((sum, { value }) => sum + value, 0);
  const own = new Set(cues.flatMap((cue) => [...cue.terms, ...cue.wholes]));
  const beside = [...terms].filter((term) => isTelling(term) && !own.has(term));
  const shared = beside.reduce((sum, term) => sum + (context.get(term) ?? 0), 0);
  const isOnly = cues.length === 1;
  const isSure = named >= (isOnly ? ONLY_NAMED_MIN : NAMED_MIN) && beside.length >= TELLING_MIN;
  const isShared = shared >= SHARED_MIN || !isOnly || cues.some(({ kind }) => kind === 'error');
  return isSure && isShared ? named + Math.min(shared, SHARED_MAX) : 0;
}

/**
 * Says whether an exchange contains the text of a cue. False for an error: error lines vary, so speaksOf() compares
 * their terms with those of each line.
 */
function mentions({ asked, answered }: Spoken, { kind, text }: Cue): boolean {
  return kind !== 'error' && (asked.includes(text) || answered.includes(text));
}

/** The weight of an error cue: the same error again is the surest sign of the same work. */
const ERROR_WEIGHT = 1.5;
/** Least sum of the values of a line's cues. */
const NAMED_MIN = 2;
/** Least value of the cue of a line that has only one cue. */
const ONLY_NAMED_MIN = 3;
/** Least sum of the values of the terms that a line shares with the prompt if its only cue is a file or a name. */
const SHARED_MIN = 1.5;
const SHARED_MAX = 10;
const SCORE_MIN = 6;
