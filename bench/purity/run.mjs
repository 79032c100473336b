/** `npm run bench:purity`: is what recorded sessions leave in the memory worth having? */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildProduct, withStore } from '../lib/product.mjs';
import { drawTable } from '../lib/statistics.mjs';

const { values: options } = parseArgs({ options: { gate: { type: 'boolean', default: false } } });

const MODULES = {
  store: 'src/adapters/store/embedded-store.ts',
  'store-worker': 'src/adapters/store/worker.ts',
  block: 'src/core/recall/recall-block.ts',
  purity: 'test/support/purity.ts',
  secrets: 'test/support/planted-secrets.ts',
};

/** What every answer of a session repeats in the echo test, and a word that only it holds. */
const FACT = 'The deploy code word is marmalade-42, and Marta Lindqvist keeps it.';
const ECHO = /marmalade|svc-memory/;
const SECRET_SEED = 20;
const never = new AbortController().signal;

const { modules, remove } = await buildProduct(MODULES);
try {
  process.exitCode = report([await measureUseful(), await measureEcho(), await measureSecrets()]);
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
    bar: '>= 90',
    isMet: share >= 90,
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
  const secrets = modules.secrets.plantSecrets(SECRET_SEED);
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
