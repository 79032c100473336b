/**
 * What each number and each part of recall is worth, on every set: the product is built again with one
 * place of its source changed. Then each number is left out of one set in turn: the value that the
 * other sets choose is judged on the set that did not choose.
 */
import { drawTable } from '../lib/statistics.mjs';
import { buildProduct } from '../lib/product.mjs';
import { measureChats, prepareChats } from './chats.mjs';
import { measureCoding } from './coding.mjs';
import { CHANGES, plain } from './changes.mjs';

/** `only`: changes whose name holds it. `half`: of LoCoMo; numbers are fitted on dev alone. */
export async function measureAblations(entries, { only = '', kind: asked, ...options }) {
  const chosen = CHANGES.filter(
    ({ name, kind }) => name.includes(only) && kind === (asked ?? kind),
  );
  const all = [];
  for (const kind of new Set(chosen.map((one) => one.kind))) {
    const list = [{ kind, name: 'as it is' }, ...chosen.filter((one) => one.kind === kind)];
    const bench = await BENCHES[kind](entries, options);
    const scores = [];
    try {
      for (const change of list) {
        const figures = await measureOne(entries, change, bench);
        process.stdout.write(`${change.name}: ${JSON.stringify(figures)}\n`);
        scores.push({ ...change, figures });
      }
    } finally {
      bench.remove();
    }
    report(kind, scores, bench.sourceOf);
    all.push(...scores);
  }
  return all;
}

/**
 * By kind of sets. `measure` gives the figures of a build by set, the `score` among them by which values are
 * chosen; sets with the same `sourceOf` ask the same questions and are left out together.
 */
const BENCHES = {
  async chats(entries, options) {
    const { sets, remove } = await prepareChats(entries, options);
    return {
      measure: (modules, settings) => measureChats(modules, sets, settings),
      sourceOf: (wanted) => sets.find(({ name }) => name === wanted).source,
      remove,
    };
  },
  coding: (_, { labels }) => ({
    measure: (modules, settings) => coding(modules, settings, labels),
    sourceOf: (set) => set,
    remove() {},
  }),
};

async function measureOne(entries, { settings = {}, ...change }, { measure }) {
  const changes = change.file === undefined ? [] : [change];
  const { modules, remove } = await buildProduct(entries, changes);
  try {
    return await measure(modules, settings);
  } finally {
    remove();
  }
}

const SHARES = ['needless', 'byLines', 'byEither', 'useful', 'fact'];

/** By repository; values are chosen by the share of needs that are met, less that of needless lines. */
async function coding(modules, settings, labels) {
  const found = await measureCoding(modules, { labels, settings, isQuiet: true });
  if (found === undefined) return {};
  return Object.fromEntries(
    found.repos.map(([repo, it]) => {
      const shares = Object.fromEntries(SHARES.map((what) => [what, 100 * it[what]]));
      const score = shares.byEither - shares.needless;
      return [repo, { score, ...shares, tokens: it.tokens }];
    }),
  );
}

function report(kind, scores, sourceOf) {
  const sets = Object.keys(scores[0].figures);
  const columns = sets.flatMap((set) =>
    Object.keys(scores[0].figures[set]).map((what) => [set, what]),
  );
  const cells = ({ figures }) =>
    columns.map(([set, what]) => figures[set]?.[what]?.toFixed(1) ?? '-');
  process.stdout.write(
    `\nOne change a row, ${kind}\n\n${drawTable(
      ['change', ...columns.map((column) => column.join(', '))],
      scores.map((one) => [one.name, ...cells(one)]),
    )}\n`,
  );
  const sources = [...new Set(sets.map(sourceOf))];
  if (sources.length > 1) reportLeftOut(scores, sources, sourceOf);
}

/** For each number and source: the value that the others choose, and what it costs the sets of this one. */
function reportLeftOut([now, ...others], sources, sourceOf) {
  const setsOf = (test) => Object.keys(now.figures).filter((set) => test(sourceOf(set)));
  const rows = [...new Set(others.flatMap(({ number }) => number ?? []))].map((number) => {
    const values = [now, ...others.filter((one) => one.number === number)];
    return [
      plain(number),
      ...sources.map((left) => {
        const choosing = setsOf((source) => source !== left);
        const sum = ({ figures }) => choosing.reduce((total, set) => total + figures[set].score, 0);
        const best = values.toSorted((a, b) => sum(b) - sum(a))[0];
        const losses = setsOf((source) => source === left).map((set) =>
          (best.figures[set].score - now.figures[set].score).toFixed(1),
        );
        return best === now ? 'the same' : [best.name, ...losses].join(', ');
      }),
    ];
  });
  process.stdout.write(
    `\nEach source left out in turn: the value that the others choose, and what it changes here\n\n${drawTable(['number', ...sources], rows)}\n`,
  );
}
