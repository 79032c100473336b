/**
 * `npm run soak`: many short conversations against the built program, in a process of its own. It prints resident memory,
 * live bytes and open descriptors as it goes, and exits 1 when memory grows with full caches or descriptors leak.
 * Linux only: both are read from /proc.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DatabaseSync } from '@photostructure/sqlite';
import { messageWith, postMessages, startSvc } from '../lib/svc-process.mjs';
import { descriptorProblem, memoryVerdict } from './rules.mjs';

const ROOT = join(import.meta.dirname, '..', '..');
/** Clients at once, as a person has a few agents. */
const CLIENTS = 4;
/** Lines of the curve. */
const SAMPLES = 48;
const WIDTHS = [8, 13, 15, 7, 13];
const WARM_REQUESTS = 200;
/**
 * Longer than an idle connection to the provider is kept, than captures wait, and than the store keeps
 * its second thread, which has eight descriptors of its own: 60 s.
 */
const IDLE_MS = 70_000;
const CAPTURED_MS = 120_000;
const ANSWER_MS = 60_000;

const { values: options } = parseArgs({
  options: {
    requests: { type: 'string', default: '60000' },
    conversations: { type: 'string', default: '12000' },
  },
});
const requests = Number(options.requests);
const conversations = Number(options.conversations);
const perConversation = Math.max(1, Math.ceil(requests / conversations));

async function run() {
  mkdirSync(join(ROOT, '.bench'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.bench', 'soak-'));
  const provider = await startProvider();
  const svc = await startSvc(folder, provider.address().port, {
    proxy: { inputBudget: 1_000 },
    node: ['--require', join(import.meta.dirname, 'probe.cjs')],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  try {
    const problems = await soak(svc, join(folder, 'data'));
    for (const problem of problems) process.stdout.write(`FAILED: ${problem}\n`);
    if (problems.length === 0) process.stdout.write('Nothing leaks that was judged.\n');
    process.exitCode = problems.length === 0 ? 0 : 1;
  } finally {
    await svc.stop();
    provider.closeAllConnections();
    provider.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `data`: its data folder. */
async function soak(svc, data) {
  await sendAll(svc, { from: conversations, count: WARM_REQUESTS });
  await sleep(IDLE_MS);
  const before = svc.descriptors();
  process.stdout.write(
    `${requests} requests over ${conversations} conversations; idle: ${Math.round(svc.residentMb())} MB, ${before} descriptors\n` +
      'requests  resident MB  live MB: main  store  descriptors\n',
  );
  const curve = [];
  const part = Math.ceil(requests / SAMPLES);
  for (let done = 0; done < requests;) {
    const count = Math.min(part, requests - done);
    await sendAll(svc, { from: done / perConversation, count });
    done += count;
    await captured(data);
    // Resident memory first, because asking for the live bytes collects garbage.
    const sample = { done, mb: Math.round(svc.residentMb()), ...(await liveBytes(svc)) };
    curve.push(sample);
    const live = [sample.main, sample.store].map((bytes) => (bytes / 1024 / 1024).toFixed(1));
    const columns = [done, sample.mb, ...live, svc.descriptors()];
    process.stdout.write(
      `${columns.map((column, at) => String(column).padStart(WIDTHS[at])).join('')}\n`,
    );
  }
  await sleep(IDLE_MS);
  const after = svc.descriptors();
  process.stdout.write(`idle again: ${Math.round(svc.residentMb())} MB, ${after} descriptors\n`);
  const { lines, problems } = memoryVerdict(curve);
  process.stdout.write(`${lines.join('\n')}\n`);
  return [...problems, descriptorProblem(before, after)].filter((it) => it !== undefined);
}

/** The bytes that stay in the main thread and in the store's when their garbage is collected; see probe.cjs. */
async function liveBytes({ child }) {
  const answer = once(child, 'message', { signal: AbortSignal.timeout(ANSWER_MS) });
  child.send('live');
  const [bytes] = await answer;
  return bytes;
}

/**
 * Waits until the store has what was captured. The clients here never pause, so captures wait in the outbox and in
 * memory; a queue that is worked off is no leak.
 */
async function captured(data) {
  const state = new DatabaseSync(join(data, 'state.db'), { readOnly: true });
  try {
    const waiting = state.prepare('SELECT EXISTS (SELECT 1 FROM outbox) AS waits');
    const until = performance.now() + CAPTURED_MS;
    while (waiting.get().waits === 1) {
      if (performance.now() > until) throw new Error('captures are not stored');
      await sleep(100);
    }
  } finally {
    state.close();
  }
}

/** Conversations from this number on, each from its first request to its last, a few at once. */
async function sendAll(svc, { from, count }) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CLIENTS });
  let next = Math.floor(from);
  let left = count;
  const client = async () => {
    while (left > 0) {
      const conversation = next;
      next += 1;
      for (let step = 0; step < perConversation && left > 0; step += 1) {
        left -= 1;
        await send(svc, agent, { conversation, body: bodyOf(conversation, step) });
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  agent.destroy();
}

/** A prompt, and a tool call more at each request: long enough to be shortened and kept. */
function bodyOf(conversation, steps) {
  const messages = [
    {
      role: 'user',
      content: `Which port does the service ${nameOf(conversation)} listen on, and since when?`,
    },
  ];
  for (let step = 0; step < steps; step += 1) {
    const id = `call_${conversation}_${step}`;
    const output = Array.from(
      { length: 40 },
      (_, line) =>
        `service ${nameOf(conversation)} file ${step} line ${line} listens on port ${6_000 + line}`,
    ).join('\n');
    messages.push(
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'Bash', input: { id } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: output }] },
    );
  }
  const tools = [{ name: 'Bash', input_schema: { type: 'object' } }];
  return JSON.stringify({ model: 'soak', max_tokens: 64, tools, messages });
}

/** A name of two words from 300 each, as people's words repeat: numbers would be new words in every conversation. */
function nameOf(number) {
  return `${wordOf(number % 300)}a ${wordOf(Math.floor(number / 300) % 300)}o`;
}

function wordOf(number) {
  const consonants = 'bdfgklmnprstvz';
  const place = Math.floor(number / 14);
  return `${consonants[number % 14]}${'aeiou'[place % 5]}${consonants[Math.floor(place / 5)]}`;
}

async function send(svc, agent, { conversation, body }) {
  const headers = { 'session-id': `soak-${conversation}` };
  const { status } = await postMessages({ port: svc.port, agent }, body, headers);
  if (status !== 200) throw new Error(`svc answered ${status}`);
}

async function startProvider() {
  let count = 0;
  const server = http.createServer((incoming, outgoing) => {
    incoming.resume();
    incoming.on('end', () => {
      count += 1;
      const text = `The service listens on port ${nameOf(count)}, since build ${nameOf(count * 7)}.`;
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      outgoing.end(messageWith(text, `msg_${count}`));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

await run();
