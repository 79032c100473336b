/** `npm run bench:recall`: does recall find what matters, and what does it cost? See ../README.md. */
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { parseArgs } from 'node:util';
import { drawTable } from '../lib/statistics.mjs';
import { measureAblations } from './ablations.mjs';
import { NEVER_LATE } from './changes.mjs';
import { measureCoding } from './coding.mjs';
import { measureEvidence } from './evidence.mjs';
import { DATA_FILE, readConversations } from './locomo.mjs';
import { buildProduct } from '../lib/product.mjs';
import { readDialogues } from './dialogues.mjs';
import { measureSilence } from './silence.mjs';
import { measureSpeed } from './speed.mjs';

const { values: options } = parseArgs({
  options: {
    suite: { type: 'string', default: 'coding,evidence,dialogues,silence,speed' },
    half: { type: 'string', default: 'test' },
    data: { type: 'string' },
    labels: { type: 'string', multiple: true },
    facts: { type: 'string' },
    /** Where the blocks, briefs and silences go that a person is to read. */
    read: { type: 'string' },
    quiet: { type: 'string' },
    brief: { type: 'string' },
    sizes: { type: 'string', default: '1000,10000,100000' },
    questions: { type: 'string', default: '300' },
    /** For the suite 'ablations': the changes whose name holds this, and the sets of this kind. */
    only: { type: 'string' },
    kind: { type: 'string' },
    json: { type: 'string' },
    gate: { type: 'boolean', default: false },
  },
});

const dataFile = options.data ?? DATA_FILE;

const MODULES = {
  store: 'src/adapters/store/embedded-store.ts',
  'store-worker': 'src/adapters/store/worker.ts',
  inside: 'src/adapters/store/store.ts',
  descriptors: 'src/adapters/store/descriptors.ts',
  block: 'src/core/recall/recall-block.ts',
  passages: 'src/core/recall/passages.ts',
  standing: 'src/core/recall/standing.ts',
  terms: 'src/core/recall/terms.ts',
  transcripts: 'src/core/memory/transcripts.ts',
  settings: 'src/core/settings/config-proxy.ts',
  recall: 'src/proxy/recall.ts',
  slices: 'src/proxy/slices.ts',
  found: 'src/core/ledger/found-entries.ts',
  reading: 'src/proxy/read-request.ts',
  conversations: 'src/proxy/conversations.ts',
};

process.exitCode = await run();

async function run() {
  const suites = options.suite.split(',');
  if (suites.includes('ablations')) return runAblations();
  const { modules, remove } = await buildProduct(MODULES, [NEVER_LATE]);
  const results = {};
  try {
    if (suites.includes('coding')) results.coding = await runCoding(modules);
    if (suites.includes('evidence')) results.evidence = await runEvidence(modules);
    if (suites.includes('dialogues')) results.dialogues = await runDialogues(modules);
    if (suites.includes('silence')) results.silence = await runSilence(modules);
  } finally {
    remove();
  }
  if (suites.includes('speed')) results.speed = await runSpeed();
  return report(results);
}

/** Each change is a build of its own, so it is a run of its own. */
async function runAblations() {
  const { only, kind, labels, json } = options;
  const half = process.argv.includes('--half') ? options.half : 'dev';
  const scores = await measureAblations(MODULES, { only, kind, half, labels, data: dataFile });
  if (json !== undefined) writeFileSync(json, JSON.stringify(scores, null, 2));
  return 0;
}

function runCoding(modules) {
  const { data, labels, facts, read: blocks, quiet, brief } = options;
  const settings = {
    ...(quiet !== undefined && { recallQuietPercent: Number(quiet) }),
    ...(brief !== undefined && { sessionBrief: brief === 'true' }),
  };
  return measureCoding(modules, { data, labels, facts, blocks, settings });
}

async function runEvidence(modules) {
  const told = readConversations({ half: options.half, areRolesTold: true, file: dataFile });
  if (told === undefined) {
    process.stdout.write(`\nEvidence: skipped, ${dataFile} is not there.\n`);
    return undefined;
  }
  const untold = readConversations({ half: options.half, areRolesTold: false, file: dataFile });
  // Neither speaker is an assistant: with one role for both, what the person said outranks nothing.
  const { product, plain } = await measureEvidence(modules, untold);
  const { product: withRoles } = await measureEvidence(modules, told);
  const rows = Object.entries({
    svc: product,
    'svc, as user and assistant': withRoles,
    'plain BM25': plain,
  });
  drawEvidence(rows);
  return Object.fromEntries(rows);
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

async function runSilence(modules) {
  const sets = { dialogues: readDialogues() };
  const found = readConversations({ ...options, areRolesTold: false, file: dataFile });
  if (found !== undefined) sets[`LoCoMo, ${options.half} half`] = found;
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

function drawEvidence(rows) {
  const { questions } = rows[0][1];
  process.stdout.write(
    `\nLoCoMo, ${options.half} half, categories 1 to 4, ${questions} questions: evidence in a block of at most 512 tokens (%)\n\n`,
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

async function runSpeed() {
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

function report(results) {
  const bars = judge(results);
  process.stdout.write(`\n${drawTable(['bar', 'svc', 'allowed', 'verdict'], bars.map(rowOf))}\n`);
  if (options.json !== undefined) {
    writeFileSync(options.json, JSON.stringify({ ...results, bars }, null, 2));
  }
  return options.gate && bars.some(({ isMet }) => !isMet) ? 1 : 0;
}

function percent(share) {
  return (100 * share).toFixed(1);
}

function rowOf({ what, value, bar, isMet }) {
  return [what, value, bar, isMet ? 'met' : 'MISSED'];
}

function judge({ coding, evidence, dialogues, silence, speed }) {
  const atLeast = (what, value, bar) => ({ what, value, bar: `>= ${bar}`, isMet: value >= bar });
  const atMost = (what, value, bar) => ({ what, value, bar: `<= ${bar}`, isMet: value <= bar });
  const bars = [];
  if (coding !== undefined) {
    const { needless, byLines, byEither, useful, fact, tokens } = coding.svc;
    bars.push(atMost('coding, needless lines, %', 100 * needless, 22));
    bars.push(atLeast('coding, needs met by lines, %', 100 * byLines, 45));
    bars.push(atLeast('coding, needs met by lines or brief, %', 100 * byEither, 75));
    bars.push(atLeast('coding, blocks with anything useful, %', 100 * useful, 62));
    if (coding.hasFacts) bars.push(atLeast('coding, fact in block, %', 100 * fact, 36));
    bars.push(atMost('coding, tokens a prompt', tokens, 120));
  }
  if (evidence !== undefined) {
    bars.push(atLeast('LoCoMo evidence in 512 tokens, %', 100 * evidence.svc.share, 76));
    // As it is published: all categories.
    bars.push(atLeast('LoCoMo dialog R@10, c1-5, %', 100 * evidence.svc.dialog10Published, 75));
    bars.push(atMost('LoCoMo blocks over 512 tokens, %', 100 * evidence.svc.over, 0));
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
    if (size === 1000 && name === 'ordinary')
      bars.push(atMost('CPU p50, 1,000 records, ms', cpu50, 3));
    if (name === 'few words')
      bars.push(atMost(`CPU p50, ${size} records of few words, ms`, cpu50, 15));
    if (size === 100_000 && name !== 'few words')
      bars.push(atMost(`CPU p99, 100,000 records, ${name}, ms`, cpu99, 25));
    if (name === 'ordinary') bars.push(atMost(`recallable at ${size} records, ms`, keptMost, 50));
  }
  return bars;
}
