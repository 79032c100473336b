/** Measures what a bench was asked for, and tells the results: tables, bars, and all of it as JSON. */
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { isPinned } from './processes.mjs';
import { drawTable } from './statistics.mjs';

/** `suites`: by name, in the order in which they are measured. Each prints its table at once. */
export async function measureAll(suites, context) {
  const results = {};
  for (const [name, suite] of Object.entries(suites)) {
    process.stderr.write(`# ${name}\n`);
    results[name] = await suite.measure(context);
    const rows = Object.entries(results[name]).map(([target, result]) => [
      target,
      ...suite.row(result),
    ]);
    process.stdout.write(`\n${suite.title}\n\n${drawTable(suite.columns, rows)}\n`);
  }
  return results;
}

/**
 * The exit code: 1 for a missed bar with --gate. `names`: of the product, and of the member of a bar that
 * stands beside it. `results`: what --json gets beside the machine and the bars.
 */
export function report(bars, { names, results, options }) {
  const [product, beside] = names;
  const rows = bars.map((it) => [
    it.what,
    it.product,
    it[beside],
    it.ratio,
    it.bar,
    it.isMet ? 'met' : 'MISSED',
  ]);
  const columns = ['bar', product, beside, 'ratio', 'allowed', 'verdict'];
  const missed = bars.filter((it) => !it.isMet).length;
  process.stdout.write(
    `\n${drawTable(columns, rows)}\n\n${bars.length - missed} met, ${missed} missed\n`,
  );
  if (options.json !== undefined) {
    const all = { machine: machineFacts(), ...results, bars };
    writeFileSync(options.json, JSON.stringify(all, null, 2));
  }
  return options.gate && missed > 0 ? 1 : 0;
}

function machineFacts() {
  return {
    node: process.version,
    cpu: os.cpus()[0]?.model,
    cores: os.cpus().length,
    isPinned,
    load: os.loadavg(),
  };
}
