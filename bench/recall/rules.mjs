/**
 * Are a person's rules placed when code is asked for, and only those in force? MemoryCode: dialogues of a mentor and a
 * new colleague, in which rules are stated, changed and changed again. Each dialogue is stored, then a new session of an
 * agent with tools asks for code; see ../README.md.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { withStore } from '../lib/product.mjs';
import { drawTable } from '../lib/statistics.mjs';

const RULES_FILE = join(
  import.meta.dirname,
  '..',
  '..',
  '..',
  'shared',
  'data',
  'memorycode-dev.json.gz',
);
const NEVER = new AbortController().signal;
/** More than a person asks in one sitting; each dialogue weighs the same. */
const QUESTIONS_MAX = 4;
/** A block whose rules take so much of their 200 tokens holds all that fit. */
const FULL_TOKENS = 170;

/** Undefined when it was skipped, which it says. */
export async function measureRules(modules, { data = RULES_FILE }) {
  if (!existsSync(data)) {
    process.stdout.write(`\nRules: SKIPPED, ${data} is not there.\n`);
    return undefined;
  }
  const dialogues = JSON.parse(gunzipSync(readFileSync(data)).toString());
  const rows = [];
  for (const dialogue of dialogues) rows.push(...(await askDialogue(modules, dialogue)));
  const kinds = ['2 to 5', '6 to 15', '16 to 40', 'more'];
  const results = Object.fromEntries(
    ['all', ...kinds].map((kind) => {
      const chosen = kind === 'all' ? rows : rows.filter((row) => row.kind === kind);
      return [kind, sumOf(chosen)];
    }),
  );
  const lines = Object.entries(results).map(([name, it]) => [
    name,
    it.questions,
    ...[it.placed, it.placedOrFull, it.outdated].map((share) => (share * 100).toFixed(1)),
    it.tokens.toFixed(0),
  ]);
  process.stdout.write(
    `\nRules in force that the asked code falls under (%)\n\n${drawTable(
      ['sessions', 'questions', 'placed', 'placed or no room', 'outdated lines', 'tokens'],
      lines,
    )}\n`,
  );
  return results;
}

function sumOf(rows) {
  const sum = (name) => rows.reduce((total, row) => total + row[name], 0);
  return {
    questions: rows.length,
    placed: sum('placed') / sum('due'),
    placedOrFull: sum('placedOrFull') / sum('due'),
    outdated: sum('outdated') / Math.max(1, sum('lines')),
    tokens: sum('tokens') / Math.max(1, rows.length),
  };
}

async function askDialogue(modules, dialogue) {
  const { now, replaced, records } = told(dialogue);
  if (now.size === 0) return [];
  const { length } = dialogue.sessions;
  const kind =
    length <= 5 ? '2 to 5' : length <= 15 ? '6 to 15' : length <= 40 ? '16 to 40' : 'more';
  const asked = [...new Set(dialogue.sessions.at(-1).history_eval_query)].slice(0, QUESTIONS_MAX);
  return withStore(modules, async ({ memory }) => {
    await memory.capture(records, NEVER);
    const rows = [];
    for (const query of asked) {
      const { passages } = await memory.recall(questionOf(`Write a ${query}`), NEVER);
      const lines = passages.map(({ text }) => text);
      const states = (topic) => lines.some((line) => isStated(topic, line));
      const due = [...now.values()].filter((topic) => isAskedFor(topic, query));
      const placed = due.filter(states).length;
      const tokens = lines.reduce((sum, line) => sum + line.length / 4 + 5, 0);
      const isFull = tokens > FULL_TOKENS;
      const outdated = lines.filter((line) =>
        [...replaced].some(
          ([id, topics]) =>
            topics.some((topic) => isStated(topic, line)) && !isStated(now.get(id), line),
        ),
      ).length;
      rows.push({
        kind,
        due: due.length,
        placed,
        placedOrFull: isFull ? due.length : placed,
        outdated,
        lines: lines.length,
        tokens,
      });
    }
    return rows;
  });
}

/** What was said, the rules in force at the end by their number, and what they replaced. */
function told({ context: { mentor, mentee }, sessions, instructions }) {
  const now = new Map();
  const replaced = new Map();
  const records = sessions.flatMap(({ text, type, topic }, session) => {
    const topics = topic.filter((_, place) => type[place].startsWith('instruction'));
    const named = Array.isArray(instructions[session][0]) ? instructions[session] : [];
    for (const [place, [id]] of named.entries()) {
      const earlier = now.get(id);
      if (earlier !== undefined && earlier !== topics[place]) {
        replaced.set(id, [...(replaced.get(id) ?? []), earlier]);
      }
      now.set(id, topics[place]);
    }
    return text.split('\n').flatMap((line, place) => {
      const speaker = [mentor, mentee].find((name) => line.startsWith(`${name}:`));
      if (speaker === undefined) return [];
      const said = line.slice(speaker.length + 1).trim();
      if (said === '') return [];
      const role = speaker === mentor ? 'user' : 'assistant';
      return [recordOf(said, { role, session, place })];
    });
  });
  for (const [id, topics] of replaced) {
    replaced.set(
      id,
      topics.filter((topic) => topic !== now.get(id)),
    );
  }
  return { now, replaced, records };
}

function recordOf(text, { role, session, place }) {
  return {
    digest: createHash('sha256').update(`${role}\n${text}`).digest('base64url'),
    space: 'project/memorycode',
    role,
    text,
    conversation: `session-${session}`,
    client: 'claude-code',
    at: Date.UTC(2026, 0, 1 + session) + place * 60_000,
    fingerprint: '',
    exchange: Math.floor(place / 2),
    isTimed: true,
  };
}

function questionOf(humanText) {
  return {
    space: 'project/memorycode',
    humanText,
    assistantText: '',
    excludeDigests: [],
    tokensMax: 512,
    now: Date.UTC(2027, 0, 1),
    agent: { conversation: 'asks', branch: '', quietShare: 0.8, briefTokensMax: 125 },
  };
}

const THING = /function argument|attribute|variable|method|function|class/;

/** Whether code of this kind shows that the rule was kept. */
function isAskedFor(topic, query) {
  const [thing] = THING.exec(topic) ?? [];
  if (thing === undefined) return true;
  const written = query.includes('class')
    ? ['class', 'method', 'attribute', 'variable']
    : ['function', 'function argument', 'variable'];
  return written.includes(thing);
}

/** Whether a line states the rule, by its value and by the thing that it is about. */
function isStated(topic, line) {
  return patternsOf(topic).every((pattern) => pattern.test(line));
}

function patternsOf(topic) {
  const [thing] = THING.exec(topic) ?? [];
  const things =
    thing === undefined
      ? []
      : [thing === 'function argument' ? /argument|parameter/i : new RegExp(thing, 'i')];
  const [, value] = /'([^']+)'/.exec(topic) ?? [];
  if (value !== undefined) {
    const quoted = value.replace(/^@/, '').replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
    if (topic.includes('import')) return [new RegExp(quoted, 'i')];
    if (!/^_|_$/.test(value)) return [new RegExp(quoted, 'i'), ...things];
    const place = topic.includes('start') ? /start|begin|prefix/i : /\bend|suffix/i;
    return [new RegExp(`['"\`]${quoted.replace(/^_|_$/, '_?')}['"\`]`, 'i'), place, ...things];
  }
  const said = [
    ['digit', /digit|number/i],
    ['UPPERCASE', /upper ?case|all caps|capital/i],
    ['CamelCase', /camel ?case/i],
    ['snake', /snake_? ?case/i],
    ['annotations', /annotat|type hint/i],
    ['try', /\btry\b|exception/i],
    ['assert', /assert/i],
    ['docstring', /docstring/i],
    ['comments', /comment/i],
  ].find(([name]) => topic.includes(name));
  return said === undefined ? things : [said[1], ...(said[0] === 'comments' ? [] : things)];
}
