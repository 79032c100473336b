/**
 * Measures `svc hook claude UserPromptSubmit` from exec to exit at 10,000 memories, without and with a running proxy.
 * node bench/hooks.mjs [--node FILE] [--times N]
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
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

function once(at) {
  return new Promise((resolve) => {
    const from = performance.now();
    const child = spawn(options.node, [BIN, 'hook', 'claude', 'UserPromptSubmit'], {
      env,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    let bytes = 0;
    child.stdout.on('data', (piece) => (bytes += piece.length));
    child.on('close', () => resolve({ ms: performance.now() - from, bytes }));
    const prompt = `Which ${word(at)} does the ${word(at * 7 + 1)} of the ${word(at * 3 + 2)} number ${at} need?`;
    child.stdin.end(hookInput('UserPromptSubmit', `bench-${at}`, { prompt_id: `p${at}`, prompt }));
  });
}

async function measure(name, from) {
  const times = [];
  let answered = 0;
  for (let at = 0; at < Number(options.times); at += 1) {
    const { ms, bytes } = await once(from + at);
    times.push(ms);
    if (bytes > 0) answered += 1;
  }
  times.sort((a, b) => a - b);
  const at = (share) =>
    times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(0);
  const line = `${name.padEnd(16)} p50 ${at(0.5)} ms  p95 ${at(0.95)} ms  answered ${answered} of ${times.length}`;
  process.stdout.write(`${line}\n`);
}

try {
  fill();
  await measure('without a proxy', 1);
  const proxy = spawn(options.node, [BIN, 'start', '--quiet'], { env, stdio: 'ignore' });
  await sleep(3_000);
  await measure('with a proxy', 1_000);
  proxy.kill('SIGTERM');
  await new Promise((resolve) => proxy.on('close', resolve));
} finally {
  rmSync(home, { recursive: true, force: true });
}
