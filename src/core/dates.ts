/** Words of time, in texts and of moments. Terms are stemmed, so these are too. */

const MONTHS = [
  'januari',
  'februari',
  'march',
  'april',
  'mai',
  'june',
  'juli',
  'august',
  'septemb',
  'octob',
  'novemb',
  'decemb',
] as const;

const DAYS = ['sundai', 'mondai', 'tuesdai', 'wednesdai', 'thursdai', 'fridai', 'saturdai'];

const RELATIVE = [
  'ago',
  'last',
  'next',
  'todai',
  'tonight',
  'yesterdai',
  'tomorrow',
  'week',
  'month',
  'year',
];

const TIME_WORDS: ReadonlySet<string> = new Set([...MONTHS, ...DAYS, ...RELATIVE]);
const YEAR = /^(?:19|20)\d\d$/;

export function isTimeWord(term: string): boolean {
  return TIME_WORDS.has(term) || YEAR.test(term);
}

/** Months and years among the terms. "may" is mostly the verb: only "May 2024" is a month. */
export function datesIn(terms: readonly string[]): string[] {
  const years = terms.filter((term) => YEAR.test(term));
  const months = terms.filter((term) => (MONTHS as readonly string[]).includes(term));
  const others = months.filter((month) => month !== 'mai');
  return [...years, ...(years.length > 0 && others.length === 0 ? months : others)];
}

/** Month and year of a moment (milliseconds since 1970), in UTC: the same on every machine. */
export function datesOf(at: number): ReadonlySet<string> {
  const date = new Date(at);
  return new Set([String(date.getUTCFullYear()), MONTHS[date.getUTCMonth()] ?? '']);
}

export function asksForTime(text: string): boolean {
  return /\b(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long ago)\b/i.test(
    text,
  );
}
