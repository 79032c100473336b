/**
 * SWE-ContextBench: real sessions that mended issues of twelve repositories, and later issues of the same
 * repositories. An earlier session is right for a later issue when it edited a file of that issue's patch, so
 * nobody labels anything. The set is read from a copy of its repository (jiayuanz3/SWEContextBench, `cases`).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readJson } from '../lib/input.mjs';
import { drawTable } from '../lib/statistics.mjs';
import { indexLines } from './bm25.mjs';
import { entriesOf, sourcesIn } from './coding-labels.mjs';
import { replay } from './coding-replay.mjs';

const PAST = 'SWEContextBench Lite Past Experience';
const TASKS = 'SWEContextBench Lite';
/** The reference above the lines of an exchange: rules of the person stand without one. */
const QUOTES = /^(?:\d{4}-\d\d-\d\d )?m_\w+.*:$/m;

/** Undefined when it was skipped, which it says. */
export async function measureSwe(modules, { data, settings }) {
  if (data === undefined || !existsSync(join(data, PAST)) || !existsSync(join(data, TASKS))) {
    const wanted = data === undefined ? '--data with the folder "cases"' : join(data, PAST);
    process.stdout.write(`\nSWE-ContextBench: SKIPPED, ${wanted} is not there.\n`);
    return undefined;
  }
  const past = readPast(join(data, PAST));
  const tasks = readTasks(join(data, TASKS), past);
  const rows = [];
  for (const repo of new Set(tasks.map((task) => task.repo))) {
    const own = (list) => list.filter((one) => one.repo === repo);
    rows.push(...(await measureRepo(modules, settings, { past: own(past), tasks: own(tasks) })));
  }
  return report(rows);
}

async function measureRepo(modules, settings, { past, tasks }) {
  const wanted = new Map(tasks.map(({ id, right }) => [id, right]));
  const firstPrompts = indexLines(
    past.map(({ id, human }) => ({ id, text: human })),
    modules.terms.termsOf,
  );
  const rows = [];
  await replay(modules, [...past, ...tasks], {
    settings,
    isBaselineAsked: ({ id }) => wanted.has(id),
    async look({ prompt, prior, block, plain, rank }) {
      const right = wanted.get(prompt.id);
      if (right === undefined || right.size === 0) return;
      const sources = sourcesIn(prior);
      const isRight = (entry) => sources(entry).some(({ id }) => right.has(id));
      const { lines, brief } = entriesOf(block);
      const ranked = (await rank()).map(({ text }) => isRight(text));
      const byWords = firstPrompts(prompt.human).map(({ id }) => right.has(id));
      rows.push({
        session: prompt.session,
        ranked,
        byWords,
        isShown: QUOTES.test(block),
        isQuoted: lines.some(isRight),
        isTold: [...lines, ...brief].some(isRight),
        isInPlain: entriesOf(plain).lines.some(isRight),
      });
    },
  });
  return rows;
}

function report(rows) {
  const share = (test, list = rows) => list.filter(test).length / list.length;
  const within = (list, most) => list.slice(0, most).includes(true);
  const shown = rows.filter(({ isShown }) => isShown);
  const svc = {
    first: share(({ ranked }) => within(ranked, 1)),
    five: share(({ ranked }) => within(ranked, 5)),
    shown: shown.length / rows.length,
    quoted: share(({ isQuoted }) => isQuoted),
    told: share(({ isTold }) => isTold),
    rightOfShown: share(({ isQuoted }) => isQuoted, shown),
  };
  const plain = {
    first: share(({ byWords }) => within(byWords, 1)),
    five: share(({ byWords }) => within(byWords, 5)),
    quoted: share(({ isInPlain }) => isInPlain),
  };
  const cells = (it) =>
    ['first', 'five', 'shown', 'quoted', 'told', 'rightOfShown'].map((column) =>
      it[column] === undefined ? '-' : (100 * it[column]).toFixed(1),
    );
  process.stdout.write(
    `\nSWE-ContextBench, ${rows.length} issues with a right earlier session (%)\n\n${drawTable(
      ['', 'R@1', 'R@5', 'shown', 'quoted', 'quoted or listed', 'of the shown'],
      [
        ['svc', ...cells(svc)],
        ['plain BM25', ...cells(plain)],
      ],
    )}\n`,
  );
  return { issues: rows.length, svc, plain };
}

/** As exchanges of the coding suite. */
function readPast(folder) {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => exchangeOf(name.replace('.jsonl', ''), join(folder, name)) ?? []);
}

/** Each of these sessions is one exchange. */
function exchangeOf(id, file) {
  const lines = readFileSync(file, 'utf8').split('\n').flatMap(parsed);
  const said = lines.filter(({ isSidechain, message }) => isSidechain !== true && message);
  const opening = said.find(({ type, message }) => type === 'user' && isText(message.content));
  const human = opening?.message.content ?? '';
  const repo = /^\s*repo:\s*(\S+)/m.exec(human)?.[1];
  if (repo === undefined) return undefined;
  const parts = said
    .filter(({ type, message }) => type === 'assistant' && Array.isArray(message.content))
    .flatMap(({ message }) => message.content);
  const items = parts.flatMap((part) => itemOf(part) ?? []);
  const times = said.map(({ timestamp }) => Date.parse(timestamp));
  const edits = items.flatMap(({ p = [], e }) => (e === 1 ? p : []));
  const time = { at: Math.min(...times), end: Math.max(...times) };
  return { id, repo, session: id, index: 0, ...time, branch: '', human, items, edits };
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return [];
  }
}

function isText(content) {
  return typeof content === 'string';
}

function itemOf({ type, text, name, input }) {
  if (type === 'text') return { t: text };
  if (type !== 'tool_use') return undefined;
  const path = input?.file_path ?? input?.path;
  const isEdit = name === 'Edit' || name === 'Write' || name === 'MultiEdit';
  return { c: name, ...(isText(path) && { p: [path] }), ...(isEdit && { e: 1 }) };
}

/** A new session each, after all earlier ones and never remembered. */
function readTasks(folder, past) {
  const start = Math.max(...past.map(({ end }) => end));
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name, place) => {
      const { repo, patch, problem_statement: human } = readJson(join(folder, name));
      const files = Array.from(patch.matchAll(/^diff --git a\/(\S+)/gm), ([, file]) => file);
      const edited = ({ edits }) =>
        edits.some((path) => files.some((file) => path.endsWith(`/${file}`)));
      const right = past.filter((one) => one.repo === repo && edited(one)).map(({ id }) => id);
      const time = { at: start + 1 + place, end: Infinity };
      const own = { id: name, repo, session: name, index: 0, branch: '', items: [] };
      return { ...own, ...time, human, right: new Set(right) };
    });
}
