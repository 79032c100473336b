/**
 * Changes of the product for the bench: places of its source that are others in a build of their own. A
 * test holds each to the source.
 */

const WEIGHTS = 'src/core/recall/ranking-weights.ts';
const FLOORS = 'src/core/recall/relevance.ts';
const EXCHANGES = 'src/core/recall/exchange-ranking.ts';
const LINES = 'src/core/recall/conclusions.ts';

/** Numbers of the ranking and floors of passages: how their lines begin, their value and others. */
const WEIGHTS_OF_CHATS = [
  ['k1', '0.5', '1.2'],
  ['b', '0.5', '0.75'],
  ['idfPower', '1', '0.7'],
  ['previousField', '0.3', '0'],
  ['nextField', '0.1', '0'],
  ['previousScore', '0.2', '0'],
  ['nextScore', '0.4', '0'],
  ['furtherScore', '0.1', '0'],
  ['partShare', '0.2', '0', '0.6'],
  ['pair', '0.4', '0'],
  ['userRole', '1.3', '1'],
  ['shortAnswer', '1.25', '1'],
  ['when', '0.35', '0'],
  ['date', '0.6', '0'],
  ['dateField', '0.5', '0'],
  ['similar', '0.3', '0'],
  ['sameRecord', '0.5', '1'],
  ['neighbourCoverage', '0.6', '0', '1'],
];
const FLOORS_OF_CHATS = [
  ['STRENGTH_MIN', '0.35', '0', '0.5'],
  ['STRENGTH_OF_ORDER_MIN', '0.55', '0.35'],
  ['COVERAGE_MIN', '0.2', '0'],
  ['SHARE_OTHERS_MIN', '0.02', '0'],
  ['HELD_MIN', '0.35', '0'],
  ['UNKNOWN_NAME_RARITY', '5', '1'],
  ['EVERYDAY_WEIGHT', '0.35', '1'],
];

/** A number of the product, as its line says it, and other values. `kind`: the sets that it can move. */
const NUMBERS = [
  ...WEIGHTS_OF_CHATS.map(([name, value, ...others]) => ({
    kind: 'chats',
    file: WEIGHTS,
    from: `  ${name}: ${value},`,
    others: others.map((other) => `  ${name}: ${other},`),
  })),
  ...FLOORS_OF_CHATS.map(([name, value, ...others]) => ({
    kind: 'chats',
    file: FLOORS,
    from: `const ${name} = ${value};`,
    others: others.map((other) => `const ${name} = ${other};`),
  })),
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
  { kind: 'chats', name: 'unit: exchanges', settings: { asAgent: true } },
  {
    kind: 'chats',
    name: 'no newer statement before an older one',
    file: 'src/core/recall/diversity.ts',
    from: 'const latest = latestOf(waiting, best, { change, likeness });',
    to: 'const latest = best;',
  },
  {
    kind: 'chats',
    name: 'no floor',
    file: FLOORS,
    from: '  if (!isAnswered) return [];\n',
    to: '',
  },
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
    from: ' || speaksOfThePast(own)',
    to: '',
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
  return line.trim().replace(/^const |[,;]$/g, '');
}
