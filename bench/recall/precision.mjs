/**
 * Two public sets in which silence is right at times. DevMemBench: sessions about two projects, and questions of
 * which some ask for what nobody said. PrecisionMemBench: single statements of a person, and prompts that name the
 * few that may be told; any other is noise. Each set is asked as a chat asks and as an agent does.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readJson } from '../lib/input.mjs';
import { withStore } from '../lib/product.mjs';
import { drawTable } from '../lib/statistics.mjs';
import { defaultsOf } from './coding.mjs';

const DATA = join(import.meta.dirname, '..', '..', '..', 'shared', 'data');
const SETS = [
  { name: 'DevMemBench', file: 'devmembench.json.gz', read: readDevMem },
  { name: 'PrecisionMemBench', file: 'precisionmembench.json.gz', read: readPrecision },
];
const BLOCK_TOKENS_MAX = 512;

const never = new AbortController().signal;

/** By set and way of asking; a set that is not there is skipped, which it says. */
export async function measurePrecision(modules) {
  const results = {};
  for (const { name, file, read } of SETS) {
    const path = join(DATA, file);
    if (!existsSync(path)) process.stdout.write(`\n${name}: SKIPPED, ${path} is not there.\n`);
    else results[name] = await measureSet(modules, read(readJson(path)));
  }
  const rows = Object.entries(results).flatMap(([name, ways]) =>
    Object.entries(ways).map(([way, it]) => [
      `${name}, as ${way}`,
      ...[it.silent, it.found, it.newest, it.right].map((share) =>
        Number.isNaN(share) ? '-' : (100 * share).toFixed(1),
      ),
    ]),
  );
  if (rows.length > 0) {
    process.stdout.write(
      `\nSilence where it is right, and what is told elsewhere (%)\n\n${drawTable(
        [
          '',
          'silent where nothing is known',
          'found',
          'newest of updates',
          'right of what is told',
        ],
        rows,
      )}\n`,
    );
  }
  return results;
}

async function measureSet(modules, set) {
  const { recallQuietPercent } = defaultsOf(modules);
  const agent = { conversation: 'new', branch: '', briefTokensMax: 0 };
  return {
    'a chat': await ask(modules, set, undefined),
    'an agent': await ask(modules, set, { ...agent, quietShare: recallQuietPercent / 100 }),
    'an agent without a gate': await ask(modules, set, { ...agent, quietShare: 0 }),
  };
}

/** A store of their own: an agent's prompts are compared with those before. */
function ask(modules, { records, questions }, agent) {
  return withStore(modules, async ({ memory }) => {
    await memory.capture(records, never);
    const now = Math.max(...records.map(({ at }) => at)) + 1;
    const told = [];
    for (const { space, text } of questions) {
      const asked = { space, humanText: text, assistantText: '', excludeDigests: [], now };
      const limits = { tokensMax: BLOCK_TOKENS_MAX, ...(agent && { agent }) };
      // oxlint-disable-next-line no-await-in-loop -- The order of an agent's prompts counts.
      const { passages, exchanges = [] } = await memory.recall({ ...asked, ...limits }, never);
      const lines = [...passages, ...exchanges.flatMap(({ quotes }) => quotes)];
      told.push(lines.map((line) => sourceOf(records, line.text)));
    }
    return figuresOf(questions, told);
  });
}

/** The session or the statement that a line is from. */
function sourceOf(records, line) {
  const words = line.replace(/…$/, '').split('\n')[0];
  return records.find(({ text }) => text.includes(words))?.conversation;
}

function figuresOf(questions, told) {
  const rows = questions.map((question, at) => ({ ...question, told: told[at] }));
  const share = (list, test) => list.filter(test).length / list.length;
  const known = rows.filter(({ wanted }) => wanted.length > 0);
  const lines = rows.flatMap((row) => row.told.map((one) => row.allowed.includes(one)));
  return {
    silent: share(
      rows.filter(({ allowed }) => allowed.length === 0),
      (row) => row.told.length === 0,
    ),
    found: share(known, ({ wanted, ...row }) => wanted.some((one) => row.told.includes(one))),
    newest: share(
      rows.filter(({ isUpdate }) => isUpdate),
      ({ wanted, ...row }) => row.told.includes(wanted.at(-1)),
    ),
    right: share(lines, (isRight) => isRight),
  };
}

function recordOf({ space, conversation, exchange, role, text, at }) {
  const digest = createHash('sha256').update(`${role}\n${text}`).digest('base64url');
  const fingerprint = `${conversation} ${exchange}`;
  return {
    space,
    conversation,
    client: 'claude-code',
    exchange,
    at,
    role,
    text,
    fingerprint,
    digest,
  };
}

/** Both projects are one memory: the set's questions do not say which of them they are about. */
function readDevMem({ sessions, questions }) {
  const space = 'project/devmembench';
  const records = sessions.flatMap(({ sessionId, metadata, messages }) =>
    messages.map(({ role, content }, place) =>
      recordOf({
        space,
        conversation: sessionId,
        exchange: Math.floor(place / 2),
        role,
        text: content,
        at: Date.parse(metadata.date) + place * 60_000,
      }),
    ),
  );
  const asked = questions.map(({ question, questionType, haystackSessionIds: wanted }) => ({
    space,
    text: question,
    wanted,
    allowed: wanted,
    isUpdate: questionType === 'knowledge-update',
  }));
  return { records, questions: asked };
}

const ANYWHERE = 'user:universal';

/** What holds everywhere lies in the space that all projects share. */
function readPrecision(given) {
  const beliefs = given['beliefs.seed'];
  const spaceOf = ([scope]) => (scope === ANYWHERE ? 'global' : scope);
  const user = beliefs[0].user_id;
  const records = beliefs
    .filter((belief) => belief.user_id === user)
    .map(({ _id, content, scope, created_at: at }) =>
      recordOf({
        space: spaceOf(scope),
        conversation: _id,
        exchange: 0,
        role: 'user',
        text: content,
        at: Date.parse(at),
      }),
    );
  const questions = given['retrieval.cases'].map(({ query, scope, expect }) => {
    const { relevantBeliefs, ...others } = expect;
    const wanted = relevantBeliefs?.shouldOnlyInclude ?? [];
    const pinned = Object.values(others).flatMap(({ mustInclude = [] }) => mustInclude);
    return { space: spaceOf(scope), text: query, wanted, allowed: [...wanted, ...pinned] };
  });
  return { records, questions };
}
