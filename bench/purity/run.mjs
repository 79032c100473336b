/** `npm run bench:purity`: is what recorded sessions leave in the memory worth having? */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { parseArgs } from 'node:util';
import { buildProduct, withStore } from '../lib/product.mjs';
import { drawTable } from '../lib/statistics.mjs';

const { values: options } = parseArgs({ options: { gate: { type: 'boolean', default: false } } });

const MODULES = {
  store: 'src/adapters/store/embedded-store.ts',
  'store-worker': 'src/adapters/store/worker.ts',
  block: 'src/core/recall/recall-block.ts',
  captures: 'src/core/memory/captures.ts',
  purity: 'test/support/purity.ts',
  secrets: 'test/support/planted-secrets.ts',
  forms: 'test/support/planted-forms.ts',
};

/** What every answer of a session repeats in the echo test, and a word that only it holds. */
const FACT = 'The deploy code word is marmalade-42, and Marta Lindqvist keeps it.';
const ECHO = /marmalade|svc-memory/;
const SECRET_SEED = 20;
const SESSIONS = '../shared/data/coding-dev.json.gz';
const never = new AbortController().signal;

const { modules, remove } = await buildProduct(MODULES);
try {
  const bars = [await measureUseful(), await measureEcho(), await measureSecrets()];
  process.exitCode = report([...bars, ...measureMarked()]);
} finally {
  remove();
}

async function measureUseful() {
  const { captureRecordings, judge } = modules.purity;
  const judged = judge(await captureRecordings());
  const verdicts = new Map();
  for (const { verdict } of judged) verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1);
  const rows = [...verdicts].toSorted(([, a], [, b]) => b - a);
  process.stdout.write(
    `\nRecords that recorded sessions leave, by the rules in test/support/purity.ts\n\n${drawTable(
      ['verdict', 'records'],
      rows.map(([verdict, count]) => [verdict, String(count)]),
    )}\n`,
  );
  const share = (100 * (verdicts.get('useful') ?? 0)) / judged.length;
  return {
    what: `useful of ${judged.length}, %`,
    value: share,
    bar: '>= 92',
    isMet: share >= 92,
  };
}

async function measureEcho() {
  const { answerShowing, captureRecordings } = modules.purity;
  const passage = { role: 'user', text: FACT, at: 0, client: 'codex', space: 'default' };
  const { text: block, tokens } = modules.block.writeRecallBlock([passage], 512);
  const placements = ({ view }) => {
    const item = view.items.findLast(({ humanText }) => humanText !== '');
    return item === undefined ? [] : [{ item, block, form: 'text', tokens }];
  };
  let echoes = 0;
  for (const quote of [FACT, `Earlier you told me: ${FACT}`, 'It is marmalade-42.', block]) {
    const change = (recording) => ({
      ...recording,
      answer: answerShowing(recording.dialect, quote),
    });
    // oxlint-disable-next-line no-await-in-loop -- One after the other, as sessions are.
    const records = (await captureRecordings({ change, placements })).flatMap((one) => one.records);
    echoes += records.filter(({ text }) => ECHO.test(text)).length;
  }
  return none('echoes of recalled memories', echoes);
}

/** In the bytes on disk: the tables, the index and the write-ahead log. */
async function measureSecrets() {
  const secrets = [
    ...modules.secrets.plantSecrets(SECRET_SEED),
    ...modules.forms.plantForms(SECRET_SEED),
  ];
  const more = secrets.map(({ line }) => line).join('\n');
  const { captureRecordings, withPlanted } = modules.purity;
  const change = (recording) => withPlanted(recording, more);
  const records = (await captureRecordings({ change })).flatMap((one) => one.records);
  const leaked = await withStore(modules, async ({ memory }, folder) => {
    await memory.capture(records, never);
    const bytes = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
    return secrets.filter(({ secret }) => bytes.some((file) => file.includes(secret)));
  });
  return none(`planted secrets on disk, of ${secrets.length}`, leaked.length);
}

/**
 * Sessions of strangers, which are not part of this repository, by the verdicts of a reader. A request
 * that says nothing by itself counts as useful when its exchange keeps an answer.
 */
function measureMarked() {
  if (!existsSync(SESSIONS)) {
    process.stdout.write(`\nSkipped: what a reader marked, because ${SESSIONS} is not there.\n`);
    return [];
  }
  const verdicts = readVerdicts();
  const { exchanges } = JSON.parse(gunzipSync(readFileSync(SESSIONS)));
  const counts = { useful: 0, question: 0, useless: 0 };
  for (const exchange of exchanges) {
    for (const { role } of recordsOf(exchange)) {
      const verdict = verdicts.get(markOf(exchange.id, role));
      if (verdict !== undefined) counts[verdict] += 1;
    }
  }
  const { useful, question, useless } = counts;
  const all = useful + question + useless;
  return [
    shareOf(`useful to a reader, of ${all} marked, %`, (useful + question) / all),
    { what: 'of these by themselves, %', value: (100 * useful) / all, bar: '-', isMet: true },
  ];
}

function readVerdicts() {
  const { about: _, ...marked } = JSON.parse(
    readFileSync(new URL('marked.json', import.meta.url), 'utf8'),
  );
  return new Map(
    Object.entries(marked).flatMap(([verdict, marks]) =>
      marks.split(' ').map((mark) => [mark, verdict]),
    ),
  );
}

function recordsOf({ human, items }) {
  const { captureAssistant, captureHuman } = modules.captures;
  const said = items.flatMap(({ t }) => t ?? []).join('\n\n');
  return [captureHuman(human), captureAssistant(said)].filter((record) => record !== undefined);
}

function markOf(id, role) {
  return createHash('sha256').update(`${id} ${role}`).digest('hex').slice(0, 12);
}

function shareOf(what, share) {
  return { what, value: 100 * share, bar: '>= 92', isMet: share >= 0.92 };
}

function none(what, value) {
  return { what, value, bar: '0', isMet: value === 0 };
}

function report(bars) {
  const rows = bars.map(({ what, value, bar, isMet }) => [
    what,
    value,
    bar,
    isMet ? 'met' : 'MISSED',
  ]);
  process.stdout.write(`\n${drawTable(['bar', 'svc', 'allowed', 'verdict'], rows)}\n`);
  return options.gate && bars.some(({ isMet }) => !isMet) ? 1 : 0;
}
