/**
 * Changes of the product for the bench: places of its source that are others in a build of their own. A
 * test holds each to the source.
 */

const WEIGHTS = 'src/core/recall/ranking-weights.ts';
const FLOORS = 'src/core/recall/relevance.ts';
/**
 * On a busy machine the store's second worker would answer now and then. It has heard other prompts, so a
 * prompt at the edge of the share would change sides.
 */
export const NEVER_LATE = {
  file: 'src/adapters/store/steady-client.ts',
  from: 'const LATE_MS = 30;',
  to: 'const LATE_MS = 600_000;',
};
const EXCHANGES = 'src/core/recall/exchange-ranking.ts';
const LINES = 'src/core/recall/conclusions.ts';

/** A number of the product, as its line says it, and other values. `kind`: the sets that it can move. */
const NUMBERS = [
  { kind: 'chats', file: WEIGHTS, from: '  k1: 0.5,', others: ['  k1: 1.2,'] },
  { kind: 'chats', file: WEIGHTS, from: '  b: 0.5,', others: ['  b: 0.75,'] },
  { kind: 'chats', file: WEIGHTS, from: '  previousField: 0.3,', others: ['  previousField: 0,'] },
  { kind: 'chats', file: WEIGHTS, from: '  nextScore: 0.4,', others: ['  nextScore: 0,'] },
  { kind: 'chats', file: WEIGHTS, from: '  partShare: 0.2,', others: ['  partShare: 0.6,'] },
  { kind: 'chats', file: WEIGHTS, from: '  pair: 0.4,', others: ['  pair: 0,'] },
  { kind: 'chats', file: WEIGHTS, from: '  userRole: 1.3,', others: ['  userRole: 1,'] },
  { kind: 'chats', file: WEIGHTS, from: '  shortAnswer: 1.25,', others: ['  shortAnswer: 1,'] },
  { kind: 'chats', file: WEIGHTS, from: '  similar: 0.3,', others: ['  similar: 0,'] },
  { kind: 'chats', file: WEIGHTS, from: '  sameRecord: 0.5,', others: ['  sameRecord: 1,'] },
  {
    kind: 'chats',
    file: FLOORS,
    from: 'STRENGTH_MIN = 0.35;',
    others: ['STRENGTH_MIN = 0;', 'STRENGTH_MIN = 0.5;'],
  },
  { kind: 'chats', file: FLOORS, from: 'COVERAGE_MIN = 0.2;', others: ['COVERAGE_MIN = 0;'] },
  { kind: 'chats', file: FLOORS, from: 'HELD_MIN = 0.35;', others: ['HELD_MIN = 0;'] },
  { kind: 'coding', file: EXCHANGES, from: 'AROUND_WEIGHT = 0.5;', others: ['AROUND_WEIGHT = 0;'] },
  {
    kind: 'coding',
    file: EXCHANGES,
    from: 'NEW_SHARE = 0.6;',
    others: ['NEW_SHARE = 0;', 'NEW_SHARE = 0.3;'],
  },
  {
    kind: 'coding',
    file: EXCHANGES,
    from: 'SIGNAL_ON_BRANCH = 0.15;',
    others: ['SIGNAL_ON_BRANCH = 0;'],
  },
  { kind: 'coding', file: LINES, from: 'beforeEnd: -0.02,', others: ['beforeEnd: 0,'] },
];

/** Whole parts of the product, off or another one. */
const PARTS = [
  { kind: 'coding', name: 'no gate', settings: { recallQuietPercent: 0 } },
  { kind: 'coding', name: 'a gate of 50', settings: { recallQuietPercent: 50 } },
  { kind: 'coding', name: 'no brief', settings: { sessionBrief: false } },
  {
    kind: 'coding',
    name: 'unit: passages',
    file: 'src/adapters/store/search.ts',
    from: 'if (agent !== undefined && this.#exchanges !== undefined) {',
    to: 'if (agent === undefined && this.#exchanges !== undefined) {',
  },
  {
    kind: 'coding',
    name: 'a past is no sign',
    file: 'src/adapters/store/exchange-search.ts',
    from: 'speaksOfThePast(own) ? 0 : question.agent.quietShare',
    to: 'question.agent.quietShare',
  },
];

export const CHANGES = [
  ...NUMBERS.flatMap(({ kind, file, from, others }) =>
    others.map((to) => ({ kind, file, from, to, number: from, name: plain(to) })),
  ),
  ...PARTS,
];

/** As a table shows it. */
export function plain(line) {
  return line.trim().replace(/[,;]$/, '');
}
