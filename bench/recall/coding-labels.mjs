/** Labelled data of the coding suite, and where the lines of a block come from. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InputError, readJson } from '../lib/input.mjs';

const SHARED = join(import.meta.dirname, '..', '..', '..', 'shared');
const DATA = join(SHARED, 'data', 'coding-dev.json.gz');
const LABELS = join(SHARED, 'bench', 'coding-recall', 'labels-dev.json');
const FACTS = join(SHARED, 'bench', 'coding-recall', 'facts-dev.json');

/** Undefined with the reason when the data are not there. */
export function readCoding({ data = DATA, labels, facts }) {
  const isOwn = resolve(data) === DATA;
  const labelFiles = labels ?? (isOwn ? [LABELS] : []);
  const factFile = facts ?? (isOwn ? FACTS : undefined);
  const missing = [data, ...labelFiles].find((file) => !existsSync(file));
  if (missing !== undefined) return { missing };
  const set = readJson(data);
  if (!Array.isArray(set?.prompts) || !Array.isArray(set.exchanges)) {
    throw new InputError(`${data} has no lists "prompts" and "exchanges".`);
  }
  const broken = set.exchanges.findIndex((one) => !isExchange(one));
  if (broken !== -1) {
    throw new InputError(
      `${data}: exchange ${broken} lacks one of ${Object.keys(FIELDS).join(', ')}.`,
    );
  }
  if (isOwn) markCompactions(set);
  return {
    set,
    labels: readLabels(set, labelFiles),
    facts: factFile === undefined || !existsSync(factFile) ? undefined : readFacts(factFile),
  };
}

/**
 * The transcripts of the bench's own set say before which prompts the client had replaced the history by a
 * summary. The set itself does not.
 */
function markCompactions({ exchanges }) {
  const after = new Set(readJson(join(import.meta.dirname, 'compactions.json')));
  for (const exchange of exchanges) exchange.compacted = after.has(exchange.id);
}

const FIELDS = {
  id: 'string',
  repo: 'string',
  session: 'string',
  at: 'number',
  end: 'number',
  human: 'string',
  items: 'object',
};

function isExchange(one) {
  return Object.entries(FIELDS).every(([field, type]) => typeof one?.[field] === type);
}

/** Several files are joined. An id that the data do not know is an error: it would be a silent miss. */
function readLabels({ prompts }, files) {
  const pools = new Map(prompts.map(({ id, pool }) => [id, new Set(pool)]));
  const found = new Map();
  for (const file of files) {
    for (const [id, label] of Object.entries(readJson(file))) {
      const pool = pools.get(id);
      if (pool === undefined) throw new InputError(`${file}: ${id} is no prompt of the data.`);
      const { need, relevant = [], helpful = [] } = label;
      if (need !== 'yes' && need !== 'no')
        throw new InputError(`${file}: ${id}: need is yes or no.`);
      const stray = [...relevant, ...helpful].find((one) => !pool.has(one));
      if (stray !== undefined) throw new InputError(`${file}: ${id}: ${stray} is not in its pool.`);
      found.set(id, { need, relevant: new Set(relevant), helpful: new Set(helpful) });
    }
  }
  return found;
}

/** By prompt: the patterns that must all stand in a block that says what was needed. */
function readFacts(file) {
  return new Map(
    Object.entries(readJson(file)).map(([id, { all }]) => {
      if (!Array.isArray(all))
        throw new InputError(`${file}: ${id} has no list "all" of patterns.`);
      return [id, all.map(({ source, flags }) => new RegExp(source, flags))];
    }),
  );
}

const MARKS = /^(?:- )?(?:\d{4}-\d\d-\d\d: )?(?:\(\S+\) )?(?:(?:user|assistant): )?/;
export const BRIEF_HEAD = 'Earlier sessions here:';

/** A line of the brief that only has names of its session. */
const NAMES = /^about ((?:`[^`]+`(?:, )?)+)$/;
const DAYED_NAMES = /^about (.+), last worked on (\d{4}-\d\d-\d\d)$/;

/**
 * What a block quotes, without fence, days, references and marks: lines of exchanges, and of the brief. A line of names
 * keeps its day, without which its session would be unknown.
 */
export function entriesOf(block) {
  const entries = { lines: [], brief: [] };
  let list = entries.lines;
  let day = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('- ')) {
      day = /^- (\d{4}-\d\d-\d\d): /.exec(line)?.[1] ?? day;
      const parts = list === entries.brief ? line.split(' → assistant: ') : [line];
      const said = parts.map((part) => part.replace(MARKS, ''));
      const told = said.length > 1 ? said.filter((part) => !NAMES.test(part)) : said;
      list.push(...told.map((part) => part.replace(NAMES, `about $1, last worked on ${day}`)));
    } else if (line.startsWith('  ') && list.length > 0) {
      list.push(`${list.pop()}\n${line.slice(2)}`);
    } else list = line === BRIEF_HEAD ? entries.brief : entries.lines;
  }
  return entries;
}

// Letters and digits. A shorter entry stands in many texts: it counts where it is a whole prompt, or in few.
const SHORT = 25;
const PROBE = 60;

/** Which earlier exchanges an entry may come from: by its words, so that any writer of blocks will do. */
export function sourcesIn(prior) {
  const texts = prior.map((exchange) => ({
    exchange,
    human: bare(exchange.human),
    all: bare(`${exchange.human}\n${answerOf(exchange)}`),
  }));
  const find = (entry) => {
    const named = DAYED_NAMES.exec(entry);
    if (named !== null) return exchangesNamed(prior, named);
    const said = bare(entry);
    if (said.length < SHORT) {
      const whole = texts.filter(({ human }) => human === said);
      const within = said.length < 8 ? [] : texts.filter(({ all }) => all.includes(said));
      const found = whole.length > 0 ? whole : within.length <= 3 ? within : [];
      return found.map(({ exchange }) => exchange);
    }
    const head = said.slice(0, PROBE);
    const tail = said.slice(-PROBE);
    const both = texts.filter(({ all }) => all.includes(head) && all.includes(tail));
    const found =
      both.length > 0 ? both : texts.filter(({ all }) => all.includes(head) || all.includes(tail));
    return found.map(({ exchange }) => exchange);
  };
  // The head of a list stands directly above its first item alone.
  return (entry) => {
    const found = find(entry);
    const item = entry.slice(entry.search(/:\s/) + 1);
    return found.length > 0 || item === entry ? found : find(item);
  };
}

/** The exchanges of the sessions that ended on that day and have all the names. */
function exchangesNamed(prior, [, names, day]) {
  const wanted = names.split(', ').map((name) => name.replaceAll(/`|\(\)/g, ''));
  const sessions = new Map();
  for (const one of prior) sessions.set(one.session, [...(sessions.get(one.session) ?? []), one]);
  return [...sessions.values()].flatMap((exchanges) => {
    const last = Math.max(...exchanges.map(({ at, end }) => Math.max(at, end)));
    if (!new Date(last).toISOString().startsWith(day)) return [];
    const text = exchanges.map((one) => `${one.human}\n${answerOf(one)}`).join('\n');
    return wanted.every((name) => text.includes(name)) ? exchanges : [];
  });
}

/** The visible words of an answer. */
export function answerOf({ items }) {
  return items.flatMap(({ t }) => (t === undefined ? [] : [t])).join('\n\n');
}

function bare(text) {
  return text
    .replaceAll('&lt;', '')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '');
}
