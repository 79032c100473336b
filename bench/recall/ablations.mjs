/**
 * What each number and each part of recall is worth, on every set: the product is built again with one
 * place of its source changed. Then each number is left out of one set in turn: the value that the
 * other sets choose is judged on the set that did not choose.
 */
import { drawTable } from '../lib/statistics.mjs';
import { buildProduct } from '../lib/product.mjs';
import { measureCoding } from './coding.mjs';
import { readDialogues } from './dialogues.mjs';
import { CHANGES, NEVER_LATE, plain } from './changes.mjs';
import { measureEvidence } from './evidence.mjs';
import { readConversations } from './locomo.mjs';

/** `only`: changes whose name holds it. `half`: of LoCoMo; numbers are fitted on dev alone. */
export async function measureAblations(entries, { only = '', kind: asked, half, data, labels }) {
  const chosen = CHANGES.filter(
    ({ name, kind }) => name.includes(only) && kind === (asked ?? kind),
  );
  const kinds = new Set(chosen.map(({ kind }) => kind));
  const scores = [];
  for (const kind of kinds) {
    const list = [{ kind, name: 'as it is' }, ...chosen.filter((one) => one.kind === kind)];
    for (const change of list) {
      // oxlint-disable-next-line no-await-in-loop -- One after the other: each takes the whole machine.
      const figures = await measureOne(entries, change, { half, data, labels });
      process.stdout.write(`${change.name}: ${JSON.stringify(figures)}\n`);
      scores.push({ ...change, figures });
    }
    report(
      kind,
      scores.filter((one) => one.kind === kind),
    );
  }
  return scores;
}

async function measureOne(entries, { kind, settings = {}, ...change }, options) {
  const { modules, remove } = await buildProduct(entries, [
    NEVER_LATE,
    ...(change.file === undefined ? [] : [change]),
  ]);
  try {
    return kind === 'chats'
      ? await chats(modules, options)
      : await coding(modules, settings, options);
  } finally {
    remove();
  }
}

/** By set: the share of the evidence in a block, by which values are chosen, and the order in it. */
async function chats(modules, { half, data }) {
  const figures = {};
  const sets = {
    LoCoMo: readConversations({ half, areRolesTold: false, file: data }),
    'LoCoMo, roles told': readConversations({ half, areRolesTold: true, file: data }),
    dialogues: readDialogues(),
  };
  for (const [name, set] of Object.entries(sets)) {
    if (set === undefined) continue;
    // oxlint-disable-next-line no-await-in-loop -- As above.
    const { product } = await measureEvidence(modules, set, true);
    figures[name] = { score: 100 * product.share, MRR: 100 * product.reciprocal };
  }
  return figures;
}

const SHARES = ['needless', 'byLines', 'byEither', 'useful', 'fact'];

/** By repository; values are chosen by the share of needs that are met, less that of needless lines. */
async function coding(modules, settings, { labels }) {
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

function report(kind, scores) {
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
  if (sets.length > 1) reportLeftOut(scores, sets);
}

/** For each number and set: the value that the other sets choose, and what it costs the set. */
function reportLeftOut([now, ...others], sets) {
  const rows = [...new Set(others.flatMap(({ number }) => number ?? []))].map((number) => {
    const values = [now, ...others.filter((one) => one.number === number)];
    return [
      plain(number),
      ...sets.map((left) => {
        const sum = ({ figures }) =>
          sets.filter((set) => set !== left).reduce((total, set) => total + figures[set].score, 0);
        const best = values.toSorted((a, b) => sum(b) - sum(a))[0];
        const loss = best.figures[left].score - now.figures[left].score;
        return best === now ? 'the same' : `${best.name}, ${loss.toFixed(1)}`;
      }),
    ];
  });
  process.stdout.write(
    `\nEach set left out in turn: the value that the others choose, and what it changes here\n\n${drawTable(['number', ...sets], rows)}\n`,
  );
}
