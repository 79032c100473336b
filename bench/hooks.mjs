/**
 * Measures `svc hook claude UserPromptSubmit` from exec to exit at 10,000 memories, without and with a running proxy, and
 * each event where another process holds the locks of both databases: that ends within a second too. In front of each hook
 * `node -e 0` runs: the ratio to it says more than milliseconds where the machine has other work.
 * node bench/hooks.mjs [--node FILE] [--times N]
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DatabaseSync } from '@photostructure/sqlite';
import { setTimeout as sleep } from 'node:timers/promises';

const { values: options } = parseArgs({
  options: {
    node: { type: 'string', default: process.execPath },
    times: { type: 'string', default: '40' },
  },
});
const BIN = join(import.meta.dirname, '..', 'bin', 'svc.js');
const MEMORIES = 10_000;
const home = mkdtempSync(join(tmpdir(), 'svc-bench-hooks-'));
const project = join(home, 'shop');
mkdirSync(project);
const env = {
  PATH: process.env.PATH,
  HOME: home,
  SVC_DATA_HOME: join(home, 'data'),
  SVC_PORT: '0',
  ANTHROPIC_API_KEY: 'sk-bench',
};

function svc(args, input) {
  return execFileSync(options.node, [BIN, ...args], {
    env,
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'ignore'],
  });
}

const WORDS =
  'ledger harbour invoice marmalade cache worker queue schema lock tide retry deploy shard token parser'.split(
    ' ',
  );
const word = (at) => WORDS[at % WORDS.length];

/** Fills the space of the project's folder, as a hook finds it. */
function fill() {
  const transcript = join(home, 's0.jsonl');
  const place = { sessionId: 's0', cwd: project, timestamp: '2026-11-01T00:00:00.000Z' };
  const turns = [
    {
      type: 'user',
      message: { role: 'user', content: 'Which folder does the bench of hooks use?' },
    },
    {
      type: 'assistant',
      message: { role: 'assistant', content: 'The bench of hooks uses the shop folder.' },
    },
  ];
  writeFileSync(
    transcript,
    turns.map((one) => `${JSON.stringify({ ...one, ...place })}\n`).join(''),
  );
  svc(['hook', 'claude', 'Stop'], hookInput('Stop', 's0', { transcript_path: transcript }));
  const [{ space }] = JSON.parse(svc(['memory', 'list', '--json']));
  const lines = Array.from({ length: MEMORIES }, (_, at) =>
    JSON.stringify({
      role: at % 2 === 0 ? 'user' : 'assistant',
      text: `The ${word(at)} of the ${word(at * 7 + 1)} needs the ${word(at * 3 + 2)} number ${at}, because the ${word(at * 5 + 3)} says so.`,
      space,
      conversation: `c${at >> 4}`,
      client: 'claude-code',
      at: Date.now() - at * 60_000,
      exchange: (at >> 1) % 8,
    }),
  );
  svc(['memory', 'import', '-'], lines.join('\n'));
}

function hookInput(event, session, more) {
  return JSON.stringify({
    session_id: session,
    transcript_path: '',
    cwd: project,
    hook_event_name: event,
    ...more,
  });
}

function run(args, input) {
  return new Promise((resolve) => {
    const from = performance.now();
    const child = spawn(options.node, args, { env, stdio: ['pipe', 'pipe', 'ignore'] });
    let bytes = 0;
    child.stdout.on('data', (piece) => (bytes += piece.length));
    child.on('close', () => resolve({ ms: performance.now() - from, bytes }));
    // A program that reads nothing may end before.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

function ask(at, event) {
  const prompt = `Which ${word(at)} does the ${word(at * 7 + 1)} of the ${word(at * 3 + 2)} number ${at} need?`;
  const input = hookInput(event, `bench-${at}`, { prompt_id: `p${at}`, prompt });
  return run([BIN, 'hook', 'claude', event], input);
}

/** The first runs fill Node's cache of compiled code. */
const WARMING = 3;

async function measure(
  name,
  from,
  { event = 'UserPromptSubmit', times = Number(options.times) } = {},
) {
  const [hooks, bare] = [[], []];
  let answered = 0;
  for (let at = -WARMING; at < times; at += 1) {
    const { ms: bareMs } = await run(['-e', '0'], '');
    const { ms, bytes } = await ask(from + at, event);
    if (at < 0) continue;
    bare.push(bareMs);
    hooks.push(ms);
    if (bytes > 0) answered += 1;
  }
  const [own, node] = [hooks, bare].map((all) => all.toSorted((a, b) => a - b));
  const at = (all, share) => all[Math.min(all.length - 1, Math.floor(share * all.length))];
  const ratio = (at(own, 0.5) / at(node, 0.5)).toFixed(1);
  const ms = (all) => `p50 ${at(all, 0.5).toFixed(0)} ms  p95 ${at(all, 0.95).toFixed(0)} ms`;
  const line = `${name.padEnd(24)} ${ms(own)}  node -e 0: ${ms(node)}  ratio ${ratio}  answered ${answered} of ${own.length}`;
  process.stdout.write(`${line}\n`);
}

/** Few: each takes most of a second. */
const LOCKED_TIMES = 5;
const LOCKED_EVENTS = ['SessionStart', 'UserPromptSubmit', 'PreCompact', 'Stop', 'SessionEnd'];

async function measureLocked() {
  const files = ['state.db', 'memory.db'].map((name) => new DatabaseSync(join(home, 'data', name)));
  for (const file of files) file.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  for (const [at, event] of LOCKED_EVENTS.entries()) {
    await measure(`locked, ${event}`, 2_000 + 100 * at, { event, times: LOCKED_TIMES });
  }
  for (const file of files) file.close();
}

try {
  fill();
  await measure('without a proxy', 10);
  await measureLocked();
  const proxy = spawn(options.node, [BIN, 'start', '--quiet'], { env, stdio: 'ignore' });
  await sleep(3_000);
  await measure('with a proxy', 1_000);
  proxy.kill('SIGTERM');
  await new Promise((resolve) => proxy.on('close', resolve));
} finally {
  rmSync(home, { recursive: true, force: true });
}
