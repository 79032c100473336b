/** Safety checks of what a block quotes: whose words they are, and that they are whole. */

const CONCLUSIONS = 'test/core/conclusions.test.ts';
const BRIEF = 'test/core/session-brief.test.ts';

export const QUOTES = [
  {
    name: 'words that nobody vouches for outrank the person’s',
    file: 'src/core/recall/exchange-ranking.ts',
    from: 'Number(a.exchange.isUnverified) - Number(b.exchange.isUnverified) ||',
    to: '',
    test: 'test/core/exchange-ranking.test.ts',
  },
  {
    name: 'a piece of a text is quoted as a sentence',
    file: 'src/core/recall/conclusions.ts',
    from: 'isFragment(text) || isWeak(text)',
    to: 'isWeak(text)',
    test: CONCLUSIONS,
  },
  {
    name: 'a question or an order is quoted',
    file: 'src/core/recall/conclusions.ts',
    from: 'if (!isStatement(text) || (',
    to: 'if ((',
    test: CONCLUSIONS,
  },
  {
    name: 'lines about other things are quoted beside a line about the prompt',
    file: 'src/core/recall/conclusions.ts',
    from: 'lines.filter(({ item }, at) => (shared[at] ?? 0) >= least || concludes(item))',
    to: 'lines',
    test: CONCLUSIONS,
  },
  {
    name: 'a common word makes a line be about the prompt, beside a line with a rare one',
    file: 'src/core/recall/conclusions.ts',
    from: 'const least = most < SHARED_MIN ? Number.EPSILON : SHARED_MIN;',
    to: 'const least = Number.EPSILON;',
    test: CONCLUSIONS,
  },
  {
    name: 'a session is named by words that name nothing',
    file: 'src/core/recall/session-brief.ts',
    from: 'if (naming.size < (shared > 0 || hasValue(title) ? NAMING_SHARED_MIN : NAMING_MIN)) return [];',
    to: '',
    test: BRIEF,
  },
  {
    name: 'a title says what is open, or what nobody asked about',
    file: 'src/core/recall/session-brief.ts',
    from: 'if (!isAbout || !isOutcome || isOpen) return Number.NEGATIVE_INFINITY;',
    to: '',
    test: BRIEF,
  },
  {
    name: 'a title in the assistant’s words passes for the person’s',
    file: 'src/core/recall/session-brief.ts',
    from: '? { title: `${ANSWER_MARK}${told.title}`, score',
    to: '? { title: told.title, score',
    test: BRIEF,
  },
  {
    name: 'a request is quoted that is about something else',
    file: 'src/core/recall/conclusions.ts',
    from: 'if (match === 0 && !isOnly) continue;',
    to: '',
    test: CONCLUSIONS,
  },
];
