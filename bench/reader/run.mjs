/**
 * `npm run bench:reader`: what one request costs a person who reads the code. See README.md.
 */
import { once } from 'node:events';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import http from 'node:http';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'tsup';
import { makeBody } from '../lib/bodies.mjs';
import { sleep } from '../lib/clock.mjs';
import { CLOSURE_FILES_MAX, CLOSURE_LINES_MAX, closureOf } from '../lib/closure.mjs';
import { postMessages, startSvc } from '../lib/svc-process.mjs';

/** A person reads so many functions and files in an hour or two. */
const FUNCTIONS_MAX = 400;
const FILES_MAX = 75;

/** The rounds of the measured conversation: the first is long enough that a later one leaves old outputs out. */
const ROUNDS_BEFORE = 30;
const ROUNDS_MORE = 40;
/** Once outputs are left out, so many further requests warm everything up. */
const WARM_REQUESTS = 5;
/** What svc does after an answer ends in this time. */
const SETTLE_MS = 300;

const MODEL = 'claude-sonnet-4-5';

const USAGE = `npm run bench:reader -- [options]
  --list   the functions of each file that ran, and the files of the closure
  --gate   exit 1 when a bar is missed
`;

const { values: options } = parseArgs({
  options: {
    list: { type: 'boolean', default: false },
    gate: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const root = join(import.meta.dirname, '..', '..');
const folder = join(root, '.bench', `reader-${process.pid}`);

async function run() {
  const closure = closureOf(join(root, 'src/proxy/handle.ts'));
  mkdirSync(folder, { recursive: true });
  const provider = http.createServer(answerWithCall).listen(0, '127.0.0.1');
  try {
    await once(provider, 'listening');
    await buildFiles();
    const ran = await measure(provider.address().port);
    return report(ran, closure);
  } finally {
    provider.closeAllConnections();
    provider.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One output file for each source file, so that V8 counts by file and merges no functions. */
async function buildFiles() {
  await build({
    config: false,
    silent: true,
    entry: [join(root, 'src/**/*.ts'), `!${join(root, 'src/ui/**')}`],
    bundle: false,
    outDir: join(folder, 'src'),
    format: 'esm',
    platform: 'node',
    target: 'node20',
    define: { SVC_BUILD: '"reader"' },
    plugins: [
      {
        name: 'names-of-built-files',
        renderChunk: (code) => ({
          code: code.replaceAll(/(["']\.[^"'\n]*)\.ts(["'])/g, '$1.js$2'),
        }),
      },
    ],
  });
  // The files of the workers are those of the product.
  symlinkSync(join(root, 'dist/quick'), join(folder, 'src/adapters/processes/quick'));
}

/** As most answers in a tool loop: a thought, a sentence and a call. */
const ANSWER = [
  {
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: MODEL,
      content: [],
      stop_reason: null,
      usage: { input_tokens: 100, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  {
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text: 'I read the next file.' },
  },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'content_block_start',
    index: 1,
    content_block: { type: 'tool_use', id: 'toolu_1', name: 'tool_1', input: {} },
  },
  {
    type: 'content_block_delta',
    index: 1,
    delta: { type: 'input_json_delta', partial_json: '{"path":"src/next.ts"}' },
  },
  { type: 'content_block_stop', index: 1 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'tool_use', stop_sequence: null },
    usage: { output_tokens: 50 },
  },
  { type: 'message_stop' },
];

function answerWithCall(request, response) {
  request.resume();
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of ANSWER)
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  });
}

async function measure(providerPort) {
  const home = join(folder, 'home');
  mkdirSync(home);
  const svc = await startSvc(home, providerPort, {
    bin: join(import.meta.dirname, 'start.mjs'),
    args: [join(folder, 'src')],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const agent = new http.Agent({ keepAlive: true });
  try {
    let left = WARM_REQUESTS;
    for (let more = 0; more < ROUNDS_MORE; more += 1) {
      const isMeasured = left === 0;
      if (isMeasured) await ask(svc.child, 'begin');
      const { status, headers } = await postMessages({ port: svc.port, agent }, bodyOf(more));
      await sleep(SETTLE_MS);
      if (status !== 200) throw new Error(`svc answered ${status}`);
      const state = headers['x-svc-continuity-state'];
      if (isMeasured) {
        process.stdout.write(`request ${more + 1} of a tool loop, ${state}\n`);
        return await ask(svc.child, 'end');
      }
      if (state === 'elided_tool_output') left -= 1;
    }
    throw new Error('No request was shortened.');
  } finally {
    agent.destroy();
    await svc.stop();
  }
}

function bodyOf(more) {
  const moreRounds = ROUNDS_BEFORE + more;
  return makeBody({ bytes: 102_400, isStream: true, model: MODEL, moreRounds });
}

function ask(child, word) {
  return new Promise((resolve) => {
    child.once('message', resolve);
    child.send(word);
  });
}

function report(ran, closure) {
  const functions = ran.reduce((sum, file) => sum + file.functions.length, 0);
  const lines = [...closure.values()].reduce((sum, count) => sum + count, 0);
  if (options.list) {
    for (const { file, functions: names } of ran.toSorted((a, b) => (a.file < b.file ? -1 : 1))) {
      process.stdout.write(`${file}: ${names.join(' ')}\n`);
    }
    for (const [file, count] of closure) process.stdout.write(`${count} ${relative(root, file)}\n`);
  }
  const bars = [
    ['functions that ran', functions, FUNCTIONS_MAX],
    ['files with functions that ran', ran.length, FILES_MAX],
    ['files in the closure of handle.ts', closure.size, CLOSURE_FILES_MAX],
    ['lines in the closure of handle.ts', lines, CLOSURE_LINES_MAX],
  ];
  for (const [what, count, max] of bars) {
    process.stdout.write(`${what}: ${count} (bar <= ${max}) ${count <= max ? 'met' : 'MISSED'}\n`);
  }
  return options.gate && bars.some(([, count, max]) => count > max) ? 1 : 0;
}

if (options.help) process.stdout.write(USAGE);
else process.exitCode = await run();
