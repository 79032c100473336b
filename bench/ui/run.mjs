// The bars of the page (`npm run bench:ui`): a real Chromium with its CPU slowed four times, in front of
// a real proxy with 10,000 requests and 20,000 memories. `--requests N --memories N` takes others, and
// `--home FOLDER` keeps the memories there for the next run.
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { DatabaseSync } from '@photostructure/sqlite';
import { chromium } from 'playwright-core';

const ROOT = join(import.meta.dirname, '..', '..');
const BIN = join(ROOT, 'bin', 'svc.js');
const DAY_MS = 86_400_000;
const SLOWER = 4;
const IDLE_MS = 10_000;
const TICKS_PER_SECOND = 100;
const ROUNDS = 6;
const SETTLE_MS = 500;
const LOCAL_TOKEN = `svc_local_${'bench'.repeat(8)}`;
const ASKED = 60;
const ASK_ROUNDS = 4;
/** The tab, the sign that its view is there, and that it has come to rest. */
const VIEWS = [
  ['Memory', '.hit', '.hit'],
  ['Savings', '.chart a', '.chart a'],
  ['Health', '#live', '.checks li'],
  ['Today', '.talk', '.talk'],
];

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '10000' },
    memories: { type: 'string', default: '20000' },
    home: { type: 'string' },
  },
});

const browserPath = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'chromium'))
  .find((path) => existsSync(path));
if (browserPath === undefined) {
  process.stderr.write('SKIPPED ALOUD: no Chromium on the path: apt-get install chromium\n');
  process.exit(0);
}

const home = values.home ?? mkdtempSync(join(tmpdir(), 'svc-bench-ui-'));
const isFilled = existsSync(join(home, '.local'));
const environment = { PATH: process.env.PATH, HOME: home };
const results = [];
let proxyUrl = '';
/** A whole answer of a stand-in provider. */
const ANSWER = JSON.stringify({
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5',
  content: [{ type: 'text', text: 'Done.' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 10, output_tokens: 2 },
});
const provider = createServer((request, response) => {
  request
    .resume()
    .on('end', () => response.setHeader('content-type', 'application/json').end(ANSWER));
});
let proxy;
let browser;
try {
  results.push(bar('script and style, gzip', sizeOfPage() / 1000, { most: 70, unit: 'kB' }));
  await new Promise((done) => provider.listen(0, '127.0.0.1', done));
  proxy = await startProxy();
  if (!isFilled) fillMemories(Number(values.memories));
  fillRequests(Number(values.requests));
  browser = await chromium.launch({
    executablePath: browserPath,
    args: ['--no-sandbox', '--disable-gpu'],
  });
  await measure(browser, proxy.pid);
} finally {
  await browser?.close();
  proxy?.kill('SIGKILL');
  provider.close();
  if (values.home === undefined) rmSync(home, { recursive: true, force: true });
}
process.exitCode = results.every((isMet) => isMet) ? 0 : 1;

function bar(name, value, { most, unit }) {
  const isMet = value <= most;
  const line = `${isMet ? 'met   ' : 'MISSED'}  ${name.padEnd(34)} ${value.toFixed(1).padStart(8)} ${unit} (at most ${most})`;
  process.stdout.write(`${line}\n`);
  return isMet;
}

function sizeOfPage() {
  const folder = join(ROOT, 'dist', 'ui');
  return readdirSync(folder).reduce(
    (sum, name) => sum + gzipSync(readFileSync(join(folder, name))).length,
    0,
  );
}

async function startProxy() {
  const folder = join(home, '.config', 'svc');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const upstream = {
    name: 'none',
    apiStyle: 'anthropic_messages',
    baseUrl: `http://127.0.0.1:${provider.address().port}`,
    providerKey: 'bench-key-that-opens-nothing',
    auth: 'x-api-key',
    allowPrivate: true,
  };
  const config = { version: 1, proxy: { port: 0 }, upstreams: [upstream], localToken: LOCAL_TOKEN };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  const child = spawn(process.execPath, [BIN, 'start', '--json'], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  proxyUrl = JSON.parse(String(line)).url;
  return child;
}

function svc(args, input = '') {
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], {
    env: environment,
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`svc ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}

/** In the form of `svc memory export`: one real record, and others made after it. */
function fillMemories(count) {
  svc([
    'memory',
    'add',
    'The tide checks of the harbour go into the planner.',
    '--space',
    'project-0',
  ]);
  const [line] = svc(['memory', 'export']).split('\n');
  const made = JSON.parse(line);
  const words = [
    'tide',
    'berth',
    'planner',
    'harbour',
    'margin',
    'pilot',
    'depth',
    'table',
    'slot',
    'crane',
  ];
  const lines = Array.from({ length: count }, (_, at) => {
    const said = Array.from(
      { length: 20 },
      (__, word) => words[(at * 7 + word * word) % words.length],
    );
    const { digest: _digest, ref: _ref, ...rest } = made;
    return JSON.stringify({
      ...rest,
      text: `Memory ${at}: ${said.join(' ')}.`,
      space: `project-${at % 8}`,
      conversation: `session-${at >> 4}`,
      exchange: at % 16,
      at: Date.now() - (at % 80) * DAY_MS,
    });
  });
  svc(['memory', 'import'], `${lines.join('\n')}\n`);
}

function fillRequests(count) {
  const database = new DatabaseSync(join(home, '.local', 'share', 'svc', 'state.db'));
  const insert = database.prepare('INSERT INTO requests (id, at, row) VALUES (?, ?, ?)');
  database.exec('BEGIN; DELETE FROM requests');
  for (let number = 0; number < count; number += 1) {
    const row = requestRow(number, count);
    insert.run(row.id, row.at, JSON.stringify(row));
  }
  database.exec('COMMIT');
  database.close();
}

function requestRow(number, count) {
  const isRecent = number > count - 300;
  return {
    id: `req_${String(number).padStart(24, '0')}`,
    at: isRecent ? Date.now() - (count - number) * 5000 : Date.now() - (1 + (number % 80)) * DAY_MS,
    client: number % 3 === 0 ? 'codex' : 'claude-code',
    kind: 'main',
    dialect: 'anthropic_messages',
    model: 'claude-sonnet-4-5',
    space: `project-${number % 8}`,
    conversation: `session-${number >> 5}`,
    status: 200,
    end: 'complete',
    memoryMode: 'read-write',
    memoryState: number % 4 === 0 ? 'recalled' : 'empty',
    compressionMode: 'deterministic',
    continuityState: 'elided_tool_output',
    originalInputTokens: 60_000 + number,
    forwardedInputTokens: 40_000 + number,
    recalledTokens: 100,
    elidedItems: 20,
    elidedTokens: 20_000,
    usage: { input: 400, cacheRead: 39_000, cacheWrite: 900, output: 500 },
    price: { paid: 5_400, direct: 7_300 },
    items: [
      { edit: 'same', count: 4, tokens: 20_000 },
      {
        edit: 'stub',
        count: 1,
        tokens: 4_000,
        after: 40,
        kind: 'tool',
        tool: 'Bash',
        refs: ['m_aaaaaaaaaaaaaaaa'],
      },
      { edit: 'same', count: 12, tokens: 16_000 },
    ],
    ms: { body: 1, read: 2, recall: 8, plan: 1, head: 900, relay: 4000 },
  };
}

async function measure(opened, pid) {
  const context = await opened.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: SLOWER });
  const link = svc(['ui', '--print']);
  await page.addInitScript(timeChanges);
  await page.goto(link);
  const usable = await page.evaluate(() => globalThis.shownAt('.talk', 0));
  results.push(bar('link to usable page', usable, { most: 1000, unit: 'ms' }));
  const times = new Map(VIEWS.map(([tab]) => [tab, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [tab, ready, done] of VIEWS) {
      // A person looks at a view before the next one. The page asks ahead meanwhile.
      await sleep(SETTLE_MS);
      await page.locator('.views a', { hasText: tab }).click();
      times.get(tab).push(await page.evaluate((shown) => globalThis.shownAt(shown), ready));
      // The checks of Health run in a process of their own, and would compete with the next view.
      await page.locator(done).first().waitFor({ timeout: 60_000 });
    }
  }
  for (const [tab, [first, ...again]] of times) {
    const median = again.toSorted((a, b) => a - b)[again.length >> 1];
    results.push(bar(`change to ${tab}, first`, first, { most: 150, unit: 'ms' }));
    results.push(
      bar(`change to ${tab}, median of ${again.length}`, median, { most: 150, unit: 'ms' }),
    );
  }
  await sleep(3000);
  const before = ticksOf(pid);
  await sleep(IDLE_MS);
  const share = ((ticksOf(pid) - before) / TICKS_PER_SECOND / (IDLE_MS / 1000)) * 100;
  results.push(bar('CPU of the proxy, page open, idle', share, { most: 1, unit: '%' }));
  await measureRequests(context);
}

/** Requests of a client, by turns with and without an open page. */
async function measureRequests(context) {
  const times = { open: [], closed: [] };
  for (let round = 0; round < ASK_ROUNDS; round += 1) {
    for (const state of ['closed', 'open']) {
      const page = context.pages()[0];
      await page.goto(state === 'open' ? svc(['ui', '--print']) : 'about:blank');
      await sleep(2000);
      for (let nth = 0; nth < ASKED; nth += 1) {
        const from = performance.now();
        await ask(`${state}-${round}-${nth}`);
        times[state].push(performance.now() - from);
      }
    }
  }
  const median = (all) => all.toSorted((a, b) => a - b)[all.length >> 1];
  const added = median(times.open) - median(times.closed);
  results.push(bar('added to a request by an open page', added, { most: 0.5, unit: 'ms' }));
}

async function ask(session) {
  const answer = await fetch(`${proxyUrl}/v1/messages`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-api-key': LOCAL_TOKEN,
      'x-claude-code-session-id': session,
      'x-svc-memory-space': 'project-1',
    },
    body: JSON.stringify({
      model: 'claude-sonnet-4-5',
      max_tokens: 64,
      messages: [{ role: 'user', content: 'Where do the tide checks of the harbour planner go?' }],
    }),
  });
  if (!answer.ok) throw new Error(`The proxy answered ${answer.status}: ${await answer.text()}`);
  await answer.arrayBuffer();
}

/**
 * Runs in the page, because the browser's driver needs longer for a click than the page for a view.
 * The time runs from the click (or the opening) until the frame with the new view was painted.
 */
function timeChanges() {
  let clickedAt = 0;
  addEventListener('click', (event) => (clickedAt = event.timeStamp), { capture: true });
  const paintedAt = {};
  const look = () => {
    for (const selector of ['.talk', '.hit', '.chart a', '#live']) {
      const isThere = document.querySelector(selector) !== null;
      if (!isThere) delete paintedAt[selector];
      else if (!(selector in paintedAt)) {
        paintedAt[selector] = undefined;
        setTimeout(() => (paintedAt[selector] = performance.now()));
      }
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  globalThis.shownAt = async (selector, from = clickedAt) => {
    while (!(paintedAt[selector] > from)) await new Promise((done) => setTimeout(done, 20));
    return paintedAt[selector] - from;
  };
}

function ticksOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
