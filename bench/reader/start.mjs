/**
 * `node start.mjs FOLDER start …`: the product from FOLDER, where each source file is one file. A message of the parent
 * process ('begin', 'end') starts a count of the functions that the main thread runs, and answers with it.
 */
import { Session } from 'node:inspector/promises';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [folder, ...argv] = process.argv.slice(2);
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

process.on('message', (word) => void send(word));

async function send(word) {
  // Taking the coverage sets all counts to zero.
  const { result } = await session.post('Profiler.takePreciseCoverage');
  process.send(word === 'begin' ? [] : result.flatMap(countsOf));
}

/** The functions of one file of ours that ran. */
function countsOf({ url, functions }) {
  const isOurs = url.startsWith(pathToFileURL(folder).href) && !url.includes('/quick/');
  const ran = isOurs ? functions.filter(({ ranges }) => ranges[0].count > 0) : [];
  if (ran.length === 0) return [];
  const file = relative(folder, fileURLToPath(url)).replace(/\.js$/, '.ts');
  return [{ file, functions: ran.map(({ functionName }) => functionName || '(anonymous)') }];
}

const { run } = await import(join(folder, 'cli/program/quick-start.js'));
process.exitCode = await run(argv);
