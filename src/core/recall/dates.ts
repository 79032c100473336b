/** Recognises dates in questions, and names dates by terms of the index. These terms are stemmed ("januari"). */

const MONTHS =
  'januari februari march april mai june juli august septemb octob novemb decemb'.split(' ');

const DAYS = ['sundai', 'mondai', 'tuesdai', 'wednesdai', 'thursdai', 'fridai', 'saturdai'];

const RELATIVE = 'ago last next todai tonight yesterdai tomorrow week month year'.split(' ');

const TIME_WORDS: ReadonlySet<string> = new Set([...MONTHS, ...DAYS, ...RELATIVE]);
const YEAR = /^(?:19|20)\d\d$/;

const YEARS = { first: 1900, last: 2099 } as const;

/** Lists every term that names a time, for an index that stores numbers instead of words. */
export function timeTerms(): string[] {
  const years = Array.from({ length: YEARS.last - YEARS.first + 1 }, (_, at) =>
    String(YEARS.first + at),
  );
  return [...TIME_WORDS, ...years];
}

export function isTimeWord(term: string): boolean {
  return TIME_WORDS.has(term) || YEAR.test(term);
}

/** Returns the months and years among the terms. "may" is mostly a verb: it counts if a year is the only other date. */
export function datesIn(terms: readonly string[]): string[] {
  const years = terms.filter((term) => YEAR.test(term));
  const months = terms.filter((term) => MONTHS.includes(term));
  const others = months.filter((month) => month !== 'mai');
  return [...years, ...(years.length > 0 && others.length === 0 ? months : others)];
}

/** Returns the terms for month and year of a moment (milliseconds since 1970), in UTC: the same on every machine. */
export function datesOf(at: number): ReadonlySet<string> {
  const date = new Date(at);
  return new Set([String(date.getUTCFullYear()), MONTHS[date.getUTCMonth()] ?? '']);
}

export function asksForTime(text: string): boolean {
  return /\b(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long ago)\b/i.test(
    text,
  );
}

/** Says whether a question asks about the present: it has no word of the past and no "would", "could" or "might". */
export function asksForNow(text: string): boolean {
  return !/\b(?:did|was|were|had|has|have|ago|yesterday|would|could|might)\b/i.test(text);
}

/** A span of time in milliseconds since 1970; `to` is exclusive. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface NamedSpan extends Span {
  /** The words of the question that name the date. */
  readonly words: string;
}

/** Days after an event during which people still speak of it. */
const TOLD_WITHIN_DAYS = 3;
const DAY_MS = 86_400_000;

/** Says whether a text from the time `at` may be about the days of the span. */
export function wasIn({ from, to }: Span, at: number): boolean {
  return at >= from && at < to + TOLD_WITHIN_DAYS * DAY_MS;
}

/** A pattern of English names of months and their abbreviations, in lower case. */
export const MONTH_NAMES =
  'jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?';
const MONTH_STARTS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const NUMBERS = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];

/** Matches "may" in lower case, unless a preposition, an ordinal number or a year beside it shows the month. */
const MAY_AS_VERB =
  /(?<!\b(?:after|before|by|from|in|on|since|till|until) (?:\d{1,2} )?|\bof |\d(?:st|nd|rd|th) )\bmay\b(?!(?: \d{1,2})?,? (?:19|20)\d\d\b)/g;
const ISO_DAY = /\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b/;
const MONTH_DAY = new RegExp(
  `\\b(${MONTH_NAMES})\\.? (\\d{1,2})(?:st|nd|rd|th)?(?:,? ((?:19|20)\\d\\d))?\\b`,
);
const DAY_MONTH = new RegExp(
  `\\b(\\d{1,2})(?:st|nd|rd|th)?(?: of)? (${MONTH_NAMES})(?:\\.?,? ((?:19|20)\\d\\d))?\\b`,
);
const NEAR = /\b(?:yesterday|today|this morning)\b/;
const AGO = new RegExp(`\\b(\\d{1,2}|an?|${NUMBERS.join('|')}) (day|week|month)s? ago\\b`);
const LAST = new RegExp(`\\b(this|last) (week|month|${WEEKDAYS.join('|')})\\b`);

/**
 * Returns the span of days of a date in a question, such as "on March 3", "yesterday" or "last week"; undefined if the
 * question has no date.
 * Days are UTC. `now`: milliseconds since 1970. A date without a year is the latest one that is not in the future.
 */
export function spanIn(text: string, now: number): NamedSpan | undefined {
  const lower = text.replaceAll(MAY_AS_VERB, ' ').toLowerCase();
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const iso = ISO_DAY.exec(lower);
  if (iso !== null) return named(iso, dayOf([iso[1], Number(iso[2]) - 1, iso[3]], now));
  const monthDay = MONTH_DAY.exec(lower);
  if (monthDay !== null) {
    const [, month, day, year] = monthDay;
    return named(monthDay, dayOf([year, monthOf(month), day], now));
  }
  const dayMonth = DAY_MONTH.exec(lower);
  if (dayMonth !== null) {
    const [, day, month, year] = dayMonth;
    return named(dayMonth, dayOf([year, monthOf(month), day], now));
  }
  const near = NEAR.exec(lower);
  if (near !== null) {
    return named(near, spanOf(near[0] === 'yesterday' ? today - DAY_MS : today, 1));
  }
  const ago = AGO.exec(lower);
  if (ago !== null) return named(ago, aroundAgo(numberOf(ago[1]), ago[2], today));
  const last = LAST.exec(lower);
  return last === null ? undefined : named(last, relativeSpan(last[1], last[2], today));
}

function named([words]: RegExpExecArray, span: Span | undefined): NamedSpan | undefined {
  return span === undefined ? undefined : { ...span, words };
}

function monthOf(name = ''): number {
  return MONTH_STARTS.indexOf(name.slice(0, 3));
}

type NamedDay = readonly [year: string | undefined, month: number, day: string | undefined];

/** Number of years that are tried for a date without a year: of five years, one mostly has a February 29. */
const YEARS_TRIED = 5;

/** Returns the day; undefined if there is none, as for February 31. */
function dayOf([year, month, day]: NamedDay, now: number): Span | undefined {
  const date = Number(day);
  const thisYear = new Date(now).getUTCFullYear();
  const latest = Array.from({ length: YEARS_TRIED }, (_, back) => thisYear - back);
  const at = (year === undefined ? latest : [Number(year)])
    .map((one) => new Date(Date.UTC(one, month, date)))
    .filter((one) => one.getUTCMonth() === month && one.getUTCDate() === date)
    .find((one) => year !== undefined || one.getTime() <= now);
  return at && spanOf(at.getTime(), 1);
}

/** Returns the days that "two weeks ago" may mean, with half a week or month on each side. "Two days ago" is exact. */
function aroundAgo(count: number, unit: string | undefined, today: number): Span {
  if (unit === 'day') return spanOf(today - count * DAY_MS, 1);
  const days = unit === 'week' ? 7 : 30;
  const slack = Math.floor(days / 2);
  return spanOf(today - (count * days + slack) * DAY_MS, 2 * slack + 1);
}

function relativeSpan(which: string | undefined, what = '', today = 0): Span {
  const weekday = WEEKDAYS.indexOf(what);
  const isLast = which === 'last';
  if (weekday !== -1) {
    const back = (new Date(today).getUTCDay() - weekday + 7) % 7;
    return spanOf(today - (back === 0 && isLast ? 7 : back) * DAY_MS, 1);
  }
  const current = currentOf(what, today);
  return isLast ? previousOf(what, current) : current;
}

// Weeks begin on Monday, also for users whose week begins on Sunday.
function currentOf(what: string, today: number): Span {
  const date = new Date(today);
  const passed = what === 'week' ? (date.getUTCDay() + 6) % 7 : date.getUTCDate() - 1;
  return spanOf(today - passed * DAY_MS, passed + 1);
}

function previousOf(what: string, { from }: Span): Span {
  if (what === 'week') return spanOf(from - 7 * DAY_MS, 7);
  const first = new Date(from);
  return { from: Date.UTC(first.getUTCFullYear(), first.getUTCMonth() - 1, 1), to: from };
}

function numberOf(word = ''): number {
  return /^\d/.test(word) ? Number(word) : Math.max(1, NUMBERS.indexOf(word) + 1);
}

function spanOf(from: number, days: number): Span {
  return { from, to: from + days * DAY_MS };
}
