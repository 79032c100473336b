/** `npm run bench:recall`: does recall find what matters, and what does it cost? See ../README.md. */
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { basename } from 'node:path';
import { exitCodeOf } from '../lib/input.mjs';
import { drawTable } from '../lib/statistics.mjs';
import { measureAblations } from './ablations.mjs';
import { defaultsOf, measureCoding } from './coding.mjs';
import { measureEvidence } from './evidence.mjs';
import { DATA_FILE, readConversations } from './locomo.mjs';
import { buildProduct } from '../lib/product.mjs';
import { readDialogues } from './dialogues.mjs';
import { readOptions, USAGE } from './options.mjs';
import { measurePrecision } from './precision.mjs';
import { measureRules } from './rules.mjs';
import { measureSilence } from './silence.mjs';
import { measureSpeed } from './speed.mjs';
import { measureSwe } from './swe.mjs';

const MODULES = {
  store: 'src/adapters/store/embedded-store.ts',
  'store-worker': 'src/adapters/store/worker.ts',
  inside: 'src/adapters/store/store.ts',
  descriptors: 'src/adapters/store/descriptors.ts',
  block: 'src/core/recall/recall-block.ts',
  passages: 'src/core/recall/passages.ts',
  standing: 'src/core/recall/rules.ts',
  looks: 'src/core/recall/second-look.ts',
  terms: 'src/core/recall/terms.ts',
  transcripts: 'src/core/memory/transcripts.ts',
  settings: 'src/core/settings/config-proxy.ts',
  recall: 'src/proxy/recall.ts',
  slices: 'src/proxy/deadline.ts',
  texts: 'src/adapters/texts.ts',
  found: 'src/core/ledger/entries.ts',
  entries: 'src/core/ledger/entries.ts',
  reading: 'test/support/view-of.ts',
  conversations: 'src/proxy/conversations.ts',
};

process.exitCode = await exitCodeOf(() => run(readOptions()));

async function run(options) {
  if (options.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const { suites } = options;
  if (options.isAblations) return runAblations(options);
  const { modules, remove } = await buildProduct(MODULES);
  const results = {};
  try {
    if (suites.includes('coding')) results.coding = await runCoding(modules, options);
    if (suites.includes('swe')) results.swe = await runSwe(modules, options);
    if (suites.includes('evidence')) results.evidence = await runEvidence(modules, options);
    if (suites.includes('dialogues')) results.dialogues = await runDialogues(modules);
    if (suites.includes('rules')) results.rules = await measureRules(modules, options);
    if (suites.includes('silence')) {
      results.silence = await runSilence(modules, options);
      results.precision = await measurePrecision(modules);
    }
  } finally {
    remove();
  }
  if (suites.includes('speed')) results.speed = await runSpeed(options);
  return report(results, options);
}

/** Each change is a build of its own, so it is a run of its own. */
async function runAblations({ json, ...options }) {
  const scores = await measureAblations(MODULES, options);
  if (json !== undefined) writeFileSync(json, JSON.stringify(scores, null, 2));
  return 0;
}

function runCoding(modules, { seed, ...options }) {
  const settings = settingsOf(options);
  return measureCoding(modules, { ...options, seed: seed && Number(seed), settings });
}

function runSwe(modules, { data, ...options }) {
  return measureSwe(modules, {
    data,
    settings: { ...defaultsOf(modules), ...settingsOf(options) },
  });
}

function settingsOf({ quiet, brief, room }) {
  return {
    ...(quiet !== undefined && { recallQuietPercent: Number(quiet) }),
    ...(room !== undefined && { recalledTokensMax: Number(room) }),
    ...(brief !== undefined && { sessionBrief: brief === 'true' }),
    recallMs: 60_000,
  };
}

async function runEvidence(modules, { half, data }) {
  const told = readConversations({ half, areRolesTold: true, file: data });
  if (told === undefined) {
    process.stdout.write(`\nEvidence: SKIPPED, ${DATA_FILE} is not there.\n`);
    return undefined;
  }
  const untold = readConversations({ half, areRolesTold: false, file: data });
  // Neither speaker is an assistant: with one role for both, what the person said outranks nothing.
  const { product, plain } = await measureEvidence(modules, untold);
  const { product: withRoles } = await measureEvidence(modules, told);
  const rows = Object.entries({
    svc: product,
    'svc, as user and assistant': withRoles,
    'plain BM25': plain,
  });
  drawEvidence(rows, nameOf({ half, data }));
  return Object.fromEntries(rows);
}

function nameOf({ half, data }) {
  const set = data === undefined ? 'LoCoMo' : basename(data);
  return half === 'all' ? set : `${set}, ${half} half`;
}

async function runDialogues(modules) {
  const { product, plain } = await measureEvidence(modules, readDialogues());
  const kinds = Object.keys(product.categories);
  const rowOfKinds = (name, it) => [
    name,
    ...[it.share, it.reciprocal, it.newest / it.updates].map(percent),
    it.tokens.toFixed(0),
    it.tokensMost.toFixed(0),
    ...kinds.map((kind) => percent(it.categories[kind])),
  ];
  process.stdout.write(
    `\nDialogues with long answers, ${product.questions} questions: evidence in a block of at most 512 tokens (%)\n\n${drawTable(
      ['', 'evidence', 'MRR', 'newest first', 'tokens', 'most', ...kinds],
      [rowOfKinds('svc', product), rowOfKinds('plain BM25', plain)],
    )}\n`,
  );
  return product;
}

async function runSilence(modules, { half, data }) {
  const sets = { dialogues: readDialogues() };
  const found = readConversations({ half, areRolesTold: false, file: data });
  if (found !== undefined) sets[nameOf({ half, data })] = found;
  const results = {};
  for (const [name, set] of Object.entries(sets))
    results[name] = await measureSilence(modules, set);
  process.stdout.write(
    `\nQuestions that get an answer (%): of other conversations, coding prompts, their own\n\n${drawTable(
      ['', 'others', 'prompts', 'own', 'standing a prompt'],
      Object.entries(results).map(([name, it]) => [
        name,
        ...[it.foreign, it.prompts, it.own].map(percent),
        it.standing.toFixed(2),
      ]),
    )}\n`,
  );
  return results;
}

function drawEvidence(rows, set) {
  const { questions } = rows[0][1];
  process.stdout.write(
    `\n${set}, categories 1 to 4, ${questions} questions: evidence in a block of at most 512 tokens (%)\n\n`,
  );
  const columns = [
    '',
    'evidence',
    'any',
    'all',
    'dialog R@10',
    'c1-5',
    'session R@5',
    'R@10',
    'MRR',
  ];
  const more = ['nothing', 'over', 'tokens', 'most', 'c1', 'c2', 'c3', 'c4', 'c5'];
  process.stdout.write(
    `${drawTable(
      [...columns, ...more],
      rows.map(([name, it]) => [
        name,
        ...[
          it.share,
          it.any,
          it.all,
          it.dialog10,
          it.dialog10Published,
          it.session5,
          it.session10,
          it.reciprocal,
          it.empty,
          it.over,
        ].map(percent),
        it.tokens.toFixed(0),
        it.tokensMost.toFixed(0),
        ...[1, 2, 3, 4, 5].map((category) => percent(it.categories[category] ?? Number.NaN)),
      ]),
    )}\n`,
  );
}

async function runSpeed(options) {
  const { modules, remove } = await buildProduct(MODULES);
  const sizes = options.sizes.split(',').map(Number);
  const asked = { sizes, questions: Number(options.questions) };
  const rows = await measureSpeed(modules, asked).finally(remove);
  const columns = [
    'records',
    'questions',
    'CPU p50',
    'p99',
    'wall p50',
    'p99',
    'found',
    'µs to keep',
    'recallable p50',
    'most',
  ];
  process.stdout.write(
    `\nMilliseconds of a recall, and from keep() until it is recalled (load ${os.loadavg()[0].toFixed(1)})\n\n${drawTable(
      columns,
      rows.map((it) => [
        String(it.size),
        it.name,
        it.cpu50,
        it.cpu99,
        it.wall50,
        it.wall99,
        it.found,
        it.fillMicroseconds,
        it.kept50,
        it.keptMost,
      ]),
    )}\n`,
  );
  return rows;
}

function report(results, { data, json, gate }) {
  const bars = judge(results, data !== undefined);
  if (bars.length > 0) {
    process.stdout.write(`\n${drawTable(['bar', 'svc', 'allowed', 'verdict'], bars.map(rowOf))}\n`);
  }
  if (json !== undefined) writeFileSync(json, JSON.stringify({ ...results, bars }, null, 2));
  return gate && bars.some(({ isMet }) => !isMet) ? 1 : 0;
}

function percent(share) {
  return (100 * share).toFixed(1);
}

function rowOf({ what, value, bar, isMet }) {
  return [what, value, bar, isMet ? 'met' : 'MISSED'];
}

/** `isOther`: the data are not the bench's own, so LoCoMo's bars do not fit them. */
function judge({ coding, evidence, dialogues, silence, speed }, isOther) {
  const atLeast = (what, value, bar) => ({ what, value, bar: `>= ${bar}`, isMet: value >= bar });
  const atMost = (what, value, bar) => ({ what, value, bar: `<= ${bar}`, isMet: value <= bar });
  const bars = [];
  if (coding !== undefined) {
    const { needless, byLines, byEither, useful, fact, tokens } = coding.svc;
    const { inPrompt, repeated, cutValues, unanswered } = coding.faults;
    bars.push(atMost('coding, needless lines, %', 100 * needless, 20));
    bars.push(atLeast('coding, needs met by lines, %', 100 * byLines, 42));
    bars.push(atLeast('coding, needs met by lines or brief, %', 100 * byEither, 75));
    bars.push(atLeast('coding, blocks with anything useful, %', 100 * useful, 65));
    if (coding.hasFacts) bars.push(atLeast('coding, fact in block, %', 100 * fact, 28));
    bars.push(atMost('coding, tokens a prompt', tokens, 120));
    bars.push(atMost('coding, lines that stand in the prompt', inPrompt, 0));
    bars.push(atMost('coding, repeated lines', repeated, 0));
    bars.push(atMost('coding, cut values', cutValues, 0));
    bars.push(atMost('coding, questions without an answer', unanswered, 0));
  }
  if (evidence !== undefined) {
    const { share, over, dialog10Published } = evidence.svc;
    const plain = evidence['plain BM25'].share;
    if (isOther) bars.push(atLeast('evidence beside plain BM25, %', 100 * share, 100 * plain));
    else {
      bars.push(atLeast('LoCoMo evidence in 512 tokens, %', 100 * share, 76));
      // As it is published: all categories.
      bars.push(atLeast('LoCoMo dialog R@10, c1-5, %', 100 * dialog10Published, 75));
    }
    bars.push(atMost('evidence, blocks over 512 tokens, %', 100 * over, 0));
  }
  if (dialogues !== undefined) {
    const { newest, updates, over } = dialogues;
    bars.push(atLeast('dialogues, newest first, %', (100 * newest) / updates, 80));
    bars.push(atMost('dialogues, blocks over 512 tokens, %', 100 * over, 0));
  }
  for (const [name, { foreign, prompts }] of Object.entries(silence ?? {})) {
    bars.push(atMost(`answered to others, ${name}, %`, 100 * foreign, 15));
    bars.push(atMost(`answered to coding prompts, ${name}, %`, 100 * prompts, 15));
  }
  for (const { name, size, cpu50, cpu99, keptMost } of speed ?? []) {
    if (name === 'few words')
      bars.push(atMost(`CPU p50, ${size} records of few words, ms`, cpu50, 15));
    if (size === 100_000 && name !== 'few words')
      bars.push(atMost(`CPU p99, 100,000 records, ${name}, ms`, cpu99, 25));
    if (name === 'ordinary') bars.push(atMost(`recallable at ${size} records, ms`, keptMost, 50));
  }
  return bars;
}
