/** Does recall help a coding agent's next prompt? Real sessions, labelled by readers; see ../README.md. */
import { writeFileSync } from 'node:fs';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { drawTable } from '../lib/statistics.mjs';
import { entriesOf, readCoding, sourcesIn } from './coding-labels.mjs';
import { replay } from './coding-replay.mjs';

/** Undefined when it was skipped, which it says. */
export async function measureCoding(modules, options) {
  const found = readCoding(options);
  if (found.missing !== undefined) {
    process.stdout.write(`\nCoding sessions: SKIPPED, ${found.missing} is not there.\n`);
    return undefined;
  }
  const { set, labels, facts } = found;
  const settings = { ...defaultsOf(modules), ...options.settings, recallMs: 60_000 };
  const rows = [];
  for (const repo of new Set(set.exchanges.map((exchange) => exchange.repo))) {
    const exchanges = set.exchanges.filter((exchange) => exchange.repo === repo);
    /** By session: earlier sessions that the block at its first prompt names or quotes. */
    const briefs = new Map();
    const isBaselineAsked = ({ id }) => options.isQuiet !== true && labels.has(id);
    const look = ({ prompt, prior, isFirst, block, plain }) => {
      const sources = sourcesIn(prior);
      if (isFirst) briefs.set(prompt.session, sessionsIn(block, sources));
      const row = { id: prompt.id, repo, prompt: prompt.human, block, isFirst };
      const label = labels.get(prompt.id);
      if (label === undefined) return rows.push(row);
      const given = { label, facts: facts?.get(prompt.id) };
      const relevant = prior.filter(({ id }) => label.relevant.has(id));
      return rows.push({
        ...row,
        label,
        listed: briefs.get(prompt.session) ?? new Set(),
        relevantSessions: new Set(relevant.map(({ session }) => session)),
        svc: judged(block, sources, given),
        plain: judged(plain, sources, given),
      });
    };
    await replay(modules, exchanges, { settings, isBaselineAsked, look });
  }
  const results = {
    set: set.set,
    repos: byRepo(rows),
    ...report(rows, options.isQuiet === true ? undefined : set.set, facts !== undefined),
  };
  if (options.blocks !== undefined) writeFileSync(options.blocks, reading(rows));
  return results;
}

function defaultsOf({ settings }) {
  const findings = { problem() {}, warnUnknown() {}, problems: [] };
  return settings.readProxySettings({}, { environment: {}, flags: {} }, findings);
}

function sessionsIn(block, sources) {
  return new Set(
    entriesOf(block).brief.flatMap((one) => sources(one).map(({ session }) => session)),
  );
}

function judged(block, sources, { label, facts }) {
  const { lines } = entriesOf(block);
  const ids = lines.map((line) => sources(line).map(({ id }) => id));
  const holds = (wanted) => ids.some((list) => list.some((id) => wanted.has(id)));
  return {
    kinds: ids.map((list) => kindOf(list, label)),
    isShown: lines.length > 0,
    hasRelevant: holds(label.relevant),
    isUseful: holds(label.relevant) || holds(label.helpful),
    /** Undefined where nobody wrote down the needed text. */
    hasFact: facts?.every((pattern) => pattern.test(block)),
    tokens: block === '' ? 0 : tokensOf(block),
  };
}

function kindOf(ids, { relevant, helpful }) {
  if (ids.some((id) => relevant.has(id))) return 'relevant';
  if (ids.some((id) => helpful.has(id))) return 'helpful';
  return ids.length === 0 ? 'untraced' : 'other';
}

function tokensOf(text) {
  return countTokens(text, { disallowedSpecial: new Set() });
}

/** Commit c9fa49f over 320 labelled prompts, 120 of which are the set `dev`: see ../RESULTS.md. */
const EARLIER = { dev: { needless: 0.51, byLines: 0.45, fact: 0.16, tokens: 220 } };

/** The figures of each repository alone. */
function byRepo(rows) {
  const labelled = rows.filter(({ label }) => label !== undefined);
  const repos = [...new Set(labelled.map(({ repo }) => repo))];
  const own = (repo) => labelled.filter((row) => row.repo === repo);
  return repos.map((repo) => [repo, figuresOf(own(repo), 'svc')]);
}

/** `name`: the set's; undefined prints nothing. */
function report(rows, name, hasFacts) {
  const labelled = rows.filter(({ label }) => label !== undefined);
  const figures = { svc: figuresOf(labelled, 'svc'), plain: figuresOf(labelled, 'plain') };
  if (name === undefined) return { ...figures, hasFacts };
  const list = [
    ['svc', figures.svc],
    ['plain BM25', figures.plain],
  ];
  for (const [repo, own] of byRepo(rows)) list.push([`svc, ${repo}`, own]);
  if (EARLIER[name] !== undefined) list.push(['c9fa49f', EARLIER[name]]);
  const columns = ['needless', 'byLines', 'byEither', 'useful', ...(hasFacts ? ['fact'] : [])];
  const needs = labelled.filter(({ label }) => label.need === 'yes').length;
  process.stdout.write(
    `\nCoding sessions "${name}": ${rows.length} prompts asked, ${labelled.length} labelled, ${needs} in need (%)\n\n${drawTable(
      [
        '',
        'needless',
        'met by lines',
        'lines or brief',
        'useful',
        ...(hasFacts ? ['fact'] : []),
        'tokens a prompt',
        'a shown block',
        'most',
      ],
      list.map(([who, it]) => [
        who,
        ...columns.map((column) =>
          it[column] === undefined ? '-' : (100 * it[column]).toFixed(1),
        ),
        ...['tokens', 'shownTokens', 'mostTokens'].map((column) => it[column]?.toFixed(0) ?? '-'),
      ]),
    )}\n`,
  );
  return { ...figures, hasFacts };
}

function figuresOf(rows, who) {
  const share = (list, test) =>
    list.length === 0 ? Number.NaN : list.filter(test).length / list.length;
  const yes = rows.filter(({ label }) => label.need === 'yes');
  const no = rows.filter(({ label }) => label.need === 'no');
  const shown = rows.filter((row) => row[who].isShown);
  const isListed = ({ listed, relevantSessions }) =>
    who === 'svc' && [...relevantSessions].some((session) => listed.has(session));
  const tokens = rows.map((row) => row[who].tokens);
  const sum = tokens.reduce((total, one) => total + one, 0);
  return {
    needless: share(no, (row) => row[who].isShown),
    byLines: share(yes, (row) => row[who].hasRelevant),
    byEither: share(yes, (row) => row[who].hasRelevant || isListed(row)),
    useful: share(shown, (row) => row[who].isUseful),
    fact: share(
      yes.filter((row) => row[who].hasFact !== undefined),
      (row) => row[who].hasFact,
    ),
    tokens: sum / Math.max(1, rows.length),
    shownTokens: sum / Math.max(1, tokens.filter((one) => one > 0).length),
    mostTokens: Math.max(0, ...tokens),
  };
}

const READ = { blocks: 20, briefs: 10, silences: 20 };

/** 20 blocks, 10 briefs and 20 silences by a fixed seed, to be read by a person. */
export function reading(rows) {
  const random = seeded(20_260_501);
  const drawn = (list, count) =>
    list
      .map((row) => [random(), row])
      .toSorted(([a], [b]) => a - b)
      .slice(0, count)
      .map(([, row]) => row);
  const hasLines = ({ block }) => entriesOf(block).lines.length > 0;
  const hasBrief = ({ block }) => entriesOf(block).brief.length > 0;
  const parts = [
    ['BLOCK', drawn(rows.filter(hasLines), READ.blocks)],
    ['BRIEF', drawn(rows.filter(hasBrief), READ.briefs)],
    [
      'SILENCE',
      drawn(
        rows.filter((row) => !hasLines(row) && !row.isFirst),
        READ.silences,
      ),
    ],
  ];
  return parts
    .flatMap(([title, list]) =>
      list.map(({ id, prompt, block, label, svc }) => {
        const verdict = label === undefined ? '' : ` need=${label.need} ${svc.kinds.join(' ')}`;
        return `== ${title} ${id}${verdict}\n${prompt.slice(0, 600)}\n${block === '' ? '(nothing)' : `---\n${block}`}\n`;
      }),
    )
    .join('\n');
}

// xorshift32: the same draw everywhere.
function seeded(seed) {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
