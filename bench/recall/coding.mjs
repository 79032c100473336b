/** Does recall help a coding agent's next prompt? Real sessions, labelled by readers; see ../README.md. */
import { writeFileSync } from 'node:fs';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { drawTable, percentile } from '../lib/statistics.mjs';
import { FAULTS, faultsOf } from './coding-faults.mjs';
import { lookAgain } from './acting.mjs';
import { answerOf, entriesOf, readCoding, sourcesIn } from './coding-labels.mjs';
import { replay } from './coding-replay.mjs';
import { usedFigures, usedNext } from './used-next.mjs';

/** Undefined when it was skipped, which it says. */
export async function measureCoding(modules, options) {
  const found = readCoding(options);
  if (found.missing !== undefined) {
    process.stdout.write(`\nCoding sessions: SKIPPED, ${found.missing} is not there.\n`);
    return undefined;
  }
  const { set, labels, facts } = found;
  const settings = { ...defaultsOf(modules), ...options.settings, recallMs: 60_000 };
  const pools = new Map(set.prompts.map(({ id, pool }) => [id, new Set(pool)]));
  const rows = [];
  for (const repo of new Set(set.exchanges.map((exchange) => exchange.repo))) {
    const exchanges = set.exchanges.filter((exchange) => exchange.repo === repo);
    /** By session: the earlier sessions that its brief names. */
    const briefs = new Map();
    /** By session: the newest sessions at its first prompt, as many as a brief has lines. */
    const newest = new Map();
    const valueOf = usedNext(modules, exchanges);
    const isBaselineAsked = ({ id }) => options.isQuiet !== true && labels.has(id);
    const look = ({ prompt, prior, isFirst, block, earlier, plain }) => {
      const sources = sourcesIn(prior);
      const listed = sessionsIn(block, sources);
      if (listed.size > 0) briefs.set(prompt.session, listed);
      if (!newest.has(prompt.session)) newest.set(prompt.session, newestSessions(prior));
      const { id, human, session } = prompt;
      const texts = block === '' ? [] : prior.flatMap((one) => [one.human, answerOf(one)]);
      const faults = faultsOf(block, { prompt: human, earlier, sources: texts });
      const { lines } = entriesOf(block);
      const used = lines.length === 0 ? undefined : valueOf(prompt, lines);
      const row = { id, repo, session, prompt: human, block, isFirst, faults, used };
      const label = labels.get(prompt.id);
      if (label === undefined) return rows.push(row);
      const given = { label, facts: facts?.get(prompt.id), pool: pools.get(prompt.id) };
      const relevant = prior.filter((one) => label.relevant.has(one.id));
      return rows.push({
        ...row,
        label,
        listed: briefs.get(prompt.session) ?? new Set(),
        newest: newest.get(prompt.session),
        relevantSessions: new Set(relevant.map((one) => one.session)),
        svc: judged(block, sources, given),
        carried: judged([block, ...earlier].join('\n'), sources, given),
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
  if (options.read !== undefined) {
    const looks = await lookAgain(modules, { settings, folder: options.sessions });
    writeFileSync(options.read, reading(rows, looks, options.seed));
  }
  return results;
}

/** The settings of a person who changed none. */
export function defaultsOf({ settings }) {
  const findings = { problem() {}, warnUnknown() {}, problems: [] };
  return settings.readProxySettings({}, { environment: {}, flags: {} }, findings);
}

/** Four: a brief names so many. */
function newestSessions(prior) {
  const byEnd = prior.toSorted((a, b) => b.end - a.end).map(({ session }) => session);
  return new Set([...new Set(byEnd)].slice(0, 4));
}

function sessionsIn(block, sources) {
  return new Set(
    entriesOf(block).brief.flatMap((one) => sources(one).map(({ session }) => session)),
  );
}

function judged(block, sources, { label, facts, pool }) {
  const { lines } = entriesOf(block);
  const ids = lines.map((line) => sources(line).map(({ id }) => id));
  const holds = (wanted) => ids.some((list) => list.some((id) => wanted.has(id)));
  return {
    kinds: ids.map((list) => kindOf(list, label)),
    isShown: lines.length > 0,
    /** No reader has seen them: they count as no use. */
    unjudged: ids.filter((list) => list.length > 0 && !list.some((id) => pool.has(id))).length,
    lines: lines.length,
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

/** The figures of each repository alone: nothing may be fitted to one of them. */
function byRepo(rows) {
  const labelled = rows.filter(({ label }) => label !== undefined);
  const repos = [...new Set(labelled.map(({ repo }) => repo))];
  const own = (repo) => labelled.filter((row) => row.repo === repo);
  return repos.map((repo) => [repo, figuresOf(own(repo), 'svc')]);
}

const SHARES = [
  ['needless', 'needless'],
  ['byLines', 'met by lines'],
  ['byEither', 'lines or brief'],
  ['useful', 'useful'],
  ['fact', 'fact'],
  ['byCarried', 'met with earlier blocks'],
  ['factCarried', 'fact with earlier blocks'],
  ['unjudged', 'lines nobody judged'],
];

/** `name`: the set's; undefined prints nothing. */
function report(rows, name, hasFacts) {
  const labelled = rows.filter(({ label }) => label !== undefined);
  const figures = {
    svc: figuresOf(labelled, 'svc'),
    plain: figuresOf(labelled, 'plain'),
    newest: figuresOf(labelled, 'newest'),
    faults: sumOfFaults(rows),
    used: usedOf(rows),
  };
  if (name === undefined) return { ...figures, hasFacts };
  const repos = byRepo(rows);
  const list = [
    ['svc', figures.svc],
    ['plain BM25', figures.plain],
    ['the 4 newest sessions', figures.newest],
    ...repos.map(([repo, own]) => [`svc, ${repo}`, own]),
    ...(repos.length < 3 ? [] : repos).map(([left]) => [
      `svc, without ${left}`,
      figuresOf(
        labelled.filter(({ repo }) => repo !== left),
        'svc',
      ),
    ]),
  ];
  const columns = SHARES.filter(([column]) => !column.startsWith('fact') || hasFacts);
  const intervals = intervalsOf(labelled);
  const needs = labelled.filter(({ label }) => label.need === 'yes').length;
  const sessions = new Set(labelled.map(keyOf)).size;
  process.stdout.write(
    `\nCoding sessions "${name}": ${rows.length} prompts asked, ${labelled.length} labelled, ${needs} in need, ${sessions} sessions (%)\n\n${drawTable(
      ['', ...columns.map(([, title]) => title), 'tokens a prompt', 'a shown block', 'most'],
      [
        ...list.map(([who, it]) => [
          who,
          ...columns.map(([column]) => percentOf(it[column])),
          ...['tokens', 'shownTokens', 'mostTokens'].map((column) => it[column]?.toFixed(0) ?? '-'),
        ]),
        [
          'svc, 90 % of draws by session',
          ...columns.map(([column]) => intervals[column].map(percentOf).join(' to ')),
          intervals.tokens.map((one) => one.toFixed(0)).join(' to '),
          '-',
          '-',
        ],
      ],
    )}\n`,
  );
  reportFaults(rows);
  reportUsed(rows);
  return { ...figures, intervals, hasFacts, prompts: labelled.map(promptOf) };
}

/** To compare two runs prompt by prompt. */
function promptOf({ id, label, svc, listed, relevantSessions, block }) {
  const isListed = [...relevantSessions].some((session) => listed.has(session));
  const { isShown, hasRelevant, isUseful, hasFact } = svc;
  return { id, need: label.need, isShown, hasRelevant, isListed, isUseful, hasFact, block };
}

function percentOf(share) {
  return share === undefined || Number.isNaN(share) ? '-' : (100 * share).toFixed(1);
}

function keyOf({ repo, session }) {
  return `${repo} ${session}`;
}

const DRAWS = 1000;

/** The prompts of a session are alike, so whole sessions are drawn. */
function intervalsOf(labelled) {
  const keys = [...new Set(labelled.map(keyOf))];
  const sessions = keys.map((key) => labelled.filter((row) => keyOf(row) === key));
  const random = seeded(SEED);
  const draws = Array.from({ length: DRAWS }, () =>
    figuresOf(
      sessions.flatMap(() => sessions[Math.floor(random() * sessions.length)]),
      'svc',
    ),
  );
  const within = (column) => {
    const values = draws.map((one) => one[column]).filter((value) => !Number.isNaN(value));
    return [percentile(values, 0.05), percentile(values, 0.95)];
  };
  return Object.fromEntries(
    [...SHARES.map(([column]) => column), 'tokens'].map((column) => [column, within(column)]),
  );
}

function sumOfFaults(rows) {
  const blocks = rows.filter(({ block }) => block !== '');
  const sum = (test) => blocks.reduce((total, { faults }) => total + test(faults), 0);
  return {
    blocks: blocks.length,
    lines: sum(({ lines }) => lines),
    ...Object.fromEntries(FAULTS.map((kind) => [kind, sum((faults) => faults[kind].length)])),
    blocksWithFragment: sum(({ fragments }) => (fragments.length > 0 ? 1 : 0)),
  };
}

const FAULT_TITLES = {
  fragments: 'fragments',
  cut: 'cut lines',
  cutValues: 'of them without their value',
  inPrompt: 'lines of the prompt',
  repeated: 'repeated lines',
  unanswered: 'questions without an answer',
};

function reportFaults(rows) {
  const all = sumOfFaults(rows);
  process.stdout.write(
    `\nForm of all ${all.blocks} blocks, ${all.lines} lines; ${all.blocksWithFragment} blocks hold a fragment\n\n${drawTable(
      ['', ...Object.values(FAULT_TITLES)],
      [['svc', ...Object.keys(FAULT_TITLES).map((kind) => String(all[kind]))]],
    )}\n`,
  );
}

function figuresOf(rows, who) {
  const share = (list, test) =>
    list.length === 0 ? Number.NaN : list.filter(test).length / list.length;
  const yes = rows.filter(({ label }) => label.need === 'yes');
  const holdsOne = (sessions, { relevantSessions }) =>
    [...relevantSessions].some((session) => sessions.has(session));
  if (who === 'newest') return { byEither: share(yes, (row) => holdsOne(row.newest, row)) };
  const no = rows.filter(({ label }) => label.need === 'no');
  const shown = rows.filter((row) => row[who].isShown);
  const isListed = (row) => who === 'svc' && holdsOne(row.listed, row);
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
    ...(who === 'svc' && carriedOf(yes, share)),
    unjudged:
      shown.reduce((all, row) => all + row[who].unjudged, 0) /
      Math.max(
        1,
        shown.reduce((all, row) => all + row[who].lines, 0),
      ),
    tokens: sum / Math.max(1, rows.length),
    shownTokens: sum / Math.max(1, tokens.filter((one) => one > 0).length),
    mostTokens: Math.max(0, ...tokens),
  };
}

/** A line of an earlier block of the session is in the request too, so it is not quoted again. */
function carriedOf(yes, share) {
  const isJudged = ({ carried }) => carried.hasFact !== undefined;
  return {
    byCarried: share(yes, ({ carried }) => carried.hasRelevant),
    factCarried: share(yes.filter(isJudged), ({ carried }) => carried.hasFact),
  };
}

function usedOf(rows) {
  const values = rows.flatMap(({ used }) => (used === undefined ? [] : [used]));
  return usedFigures(values, rows.length);
}

function reportUsed(rows) {
  const repos = [...new Set(rows.map(({ repo }) => repo))];
  const lists = [
    ['svc', rows],
    ...repos.map((repo) => [`svc, ${repo}`, rows.filter((row) => row.repo === repo)]),
  ];
  const cells = ({ blocks, usedShare, valueAPrompt }) => [
    String(blocks),
    percentOf(usedShare),
    valueAPrompt.toFixed(3),
  ];
  process.stdout.write(
    `\nWhat the agent used next, and had not met in the session: all ${rows.length} prompts\n\n${drawTable(
      ['', 'blocks with lines', 'of them used, %', 'value a prompt'],
      lists.map(([who, list]) => [who, ...cells(usedOf(list))]),
    )}\n`,
  );
}

const READ = { blocks: 30, briefs: 15, looks: 15, silences: 30 };
const SEED = 20_260_501;

/**
 * Draws 30 blocks, 15 briefs, 15 second looks and 30 silences, the same by the same seed, for a person to read.
 * `looks` is undefined without the sessions.
 */
export function reading(rows, looks, seed = SEED) {
  const random = seeded(seed);
  const drawn = (list, count) =>
    list
      .map((row) => [random(), row])
      .toSorted(([a], [b]) => a - b)
      .slice(0, count)
      .map(([, row]) => row);
  const hasLines = ({ block }) => entriesOf(block).lines.length > 0;
  const hasBrief = ({ block }) => entriesOf(block).brief.length > 0;
  const placed = (looks ?? []).filter(({ block }) => block !== '');
  const parts = [
    ['BLOCK', drawn(rows.filter(hasLines), READ.blocks)],
    ['BRIEF', drawn(rows.filter(hasBrief), READ.briefs)],
    [`SECOND LOOK (${placed.length} of ${looks?.length ?? 0})`, drawn(placed, READ.looks)],
    [
      'SILENCE',
      drawn(
        rows.filter((row) => !hasLines(row) && !row.isFirst),
        READ.silences,
      ),
    ],
  ];
  const everyFault = rows.flatMap(({ id, faults: found }) =>
    FAULTS.flatMap((kind) => found[kind].map((line) => `${kind} ${id}: ${line}`)),
  );
  return parts
    .flatMap(([title, list]) =>
      list.map(({ id, prompt, done = [], block, faults, label, svc }) => {
        const verdict = label === undefined ? '' : ` need=${label.need} ${svc.kinds.join(' ')}`;
        const found = FAULTS.flatMap((kind) =>
          (faults?.[kind] ?? []).map((line) => `\n! ${kind}: ${line}`),
        );
        const calls = done.flatMap(({ c: tool, input, o: output = '' }) =>
          tool === undefined
            ? []
            : `\n> ${tool} ${JSON.stringify(input).slice(0, 200)}${errorsIn(output)}`,
        );
        return `== ${title} ${id}${verdict}\n${prompt.slice(0, 600)}${calls.join('')}\n${block === '' ? '(nothing)' : `---\n${block}`}${found.join('')}\n`;
      }),
    )
    .concat(`== ALL FAULTS\n${everyFault.toSorted().join('\n')}\n`)
    .join('\n');
}

function errorsIn(output) {
  const lines = output.split('\n').filter((line) => /error|fail|cannot|panic/i.test(line));
  return lines
    .slice(0, 3)
    .map((line) => `\n    ${line.trim().slice(0, 160)}`)
    .join('');
}

// xorshift32: the same draw everywhere.
function seeded(seed) {
  // Of 0 nothing else comes.
  let state = seed || SEED;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
