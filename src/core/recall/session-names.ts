import { estimateTextTokens } from '../bytes/tokens.ts';
import { termsOf } from './terms.ts';

/**
 * Finds the names of files, functions, settings and commands in a session's texts, which say what the session was
 * about. A list of names cannot be read as an order, as a user's sentence from an earlier day can.
 */

/** The texts of one exchange. */
interface Said {
  readonly asked: string;
  readonly answered: string;
}

/**
 * Returns the names of each session, best first, at most NAMES_MAX. A name counts more if more texts of its session
 * have it, and less if other sessions have it too or if it is a test's. `prompt`: the terms of the prompt. A name with
 * one of them counts more, because it shows why the session is listed.
 */
export function namesOf(
  sessions: readonly (readonly Said[])[],
  prompt: ReadonlyMap<string, number> = new Map(),
): string[][] {
  const counts = sessions.map(timesNamed);
  return counts.map((own) => {
    const scored = [...own].map(([name, times]) => {
      const elsewhere = counts.filter((other) => other !== own && other.has(name)).length;
      const isAsked = termsOf(name).some((term) => prompt.has(term));
      const score = (isAsked ? ASKED : 1) * (TEST.test(name) ? OF_TEST : 1) * times;
      return { name, score: score / (1 + elsewhere) };
    });
    return scored
      .toSorted((a, b) => b.score - a.score)
      .slice(0, NAMES_MAX)
      .map(({ name }) => name);
  });
}

/** Writes the first `most` names that fit into `tokensMax` tokens as one line; '' if none fits. */
export function aboutNames(
  names: readonly string[],
  { tokensMax, most = 3 }: { tokensMax: number; most?: number },
): string {
  const kept: string[] = [];
  for (const name of names) {
    if (kept.length === most) break;
    // A file and its test, `planner.ts` and `planner_test.ts`, name one subject.
    if (kept.some((one) => rootOf(one) === rootOf(name))) continue;
    if (estimateTextTokens(lineWith([...kept, name])) <= tokensMax) kept.push(name);
  }
  return kept.length === 0 ? '' : lineWith(kept);
}

function lineWith(names: readonly string[]): string {
  return `${ABOUT}${names.map((name) => `\`${name}\``).join(', ')}`;
}

function rootOf(name: string): string {
  return name
    .replace(/\(\)$|\.\w+$/, '')
    .replace(/[._-]?(?:test|spec)s?$/i, '')
    .toLowerCase();
}

/** Says whether a text has one of the names. A function is also found without its brackets. */
export function hasName(line: string, names: readonly string[]): boolean {
  return names.some((name) => line.includes(name.replace(/\(\)$/, '')));
}

const ABOUT = 'about ';
/** Bound on the names of a session. */
const NAMES_MAX = 8;
/** Factors for the score of a name that has a term of the prompt, and of a test's name. */
const ASKED = 2;
const OF_TEST = 0.5;
const TEST = /^Test[A-Z_]|[._-](?:test|spec)s?\b/i;
/** Bound on the characters of a text that are searched, from its end: a pasted file may have a megabyte. */
const TEXT_CHARS = 16_384;

/** Counts for each name how many of the texts have it. */
function timesNamed(exchanges: readonly Said[]): ReadonlyMap<string, number> {
  const texts = new Set(exchanges.flatMap(({ answered, asked }) => [answered, asked]));
  const times = new Map<string, number>();
  for (const text of texts) {
    for (const name of namesIn(text.slice(-TEXT_CHARS))) {
      times.set(name, (times.get(name) ?? 0) + 1);
    }
  }
  return times;
}

/** Matches code of Markdown, and the name of a file with its folders. */
const CODE_OR_FILE =
  /`([^`\n]{1,80})`|(?<![\w@/.:-])((?:[\w@.-]{1,80}\/){0,12}[\w@-]{1,60}(?:\.[\w-]{1,40}){0,3}\.(?:c|cc|cjs|cpp|cs|css|dart|ex|go|h|hpp|html|java|js|json|jsx|kt|lua|md|mjs|php|proto|py|rb|rs|scala|sh|sql|svelte|swift|tf|toml|ts|tsx|vue|ya?ml))\b(?![\w/])/g;

function namesIn(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [, code, file] of text.matchAll(CODE_OR_FILE)) {
    const name = nameOf(code ?? file ?? '');
    if (name !== '') names.add(name);
  }
  return names;
}

/** Returns the name in a piece of code, without folders, line numbers and arguments; '' if it names nothing. */
function nameOf(code: string): string {
  const whole = code
    .trim()
    .replace(/^(?:[\w@.~-]*\/)+(?=[\w@.-]+\.\w+(?::|$))/, '')
    .replace(/(?<=\w):\d[\d:,-]*$/, '')
    .replace(/\(.*\)$/, '()');
  const isName = IS_NAME.test(whole) && whole.length <= NAME_CHARS_MAX;
  return isName && !HASH.test(whole) && SAYS_MORE.test(whole) ? whole : '';
}

const NAME_CHARS_MAX = 36;
/** Matches a name, or a command of at most three words. It leaves out commands of git, which most sessions have. */
const IS_NAME =
  /^(?=.*[A-Za-z]{3})(?!git )[-\w$@.][-\w$@./:#]*(?:\(\))?(?: [-\w./:]+){0,2}(?<![/:])$/;
/** Matches what distinguishes a name from a word of the language: a sign, a digit, an inner capital, or a space. */
const SAYS_MORE = /[a-z][A-Z]|\w[_./:-]\w|^-|\(\)$|\d|\w [-\w]/;
const HASH = /^[\da-f]{7,64}$/i;
