/**
 * `npm run soak`: many short conversations against the built program, in a process of its own. It prints
 * resident memory and open descriptors as it goes, and exits 1 when memory grows on or descriptors leak.
 * Linux only: both are read from /proc.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { messageWith, postMessages, startSvc } from '../lib/svc-process.mjs';
import { descriptorProblem, memoryProblem } from './rules.mjs';

const ROOT = join(import.meta.dirname, '..', '..');
/** Clients at once, as a person has a few agents. */
const CLIENTS = 4;
/** Lines of the curve. */
const SAMPLES = 40;
const WARM_REQUESTS = 200;
/**
 * Longer than an idle connection to the provider is kept, than captures wait, and than the store keeps
 * its second thread, which has eight descriptors of its own: 60 s.
 */
const IDLE_MS = 70_000;
const CAPTURED_MS = 120_000;

const { values: options } = parseArgs({
  options: {
    requests: { type: 'string', default: '4000' },
    conversations: { type: 'string', default: '800' },
  },
});
const requests = Number(options.requests);
const conversations = Number(options.conversations);
const perConversation = Math.max(1, Math.ceil(requests / conversations));

async function run() {
  mkdirSync(join(ROOT, '.bench'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.bench', 'soak-'));
  const provider = await startProvider();
  const svc = await startSvc(folder, provider.address().port, { proxy: { inputBudget: 1_000 } });
  try {
    const problems = await soak(svc, join(folder, 'data'));
    for (const problem of problems) process.stdout.write(`FAILED: ${problem}\n`);
    if (problems.length === 0) process.stdout.write('Memory stays flat and no descriptor leaks.\n');
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
      'requests      MB  descriptors\n',
  );
  const curve = [];
  const part = Math.ceil(requests / SAMPLES);
  for (let done = 0; done < requests;) {
    const count = Math.min(part, requests - done);
    await sendAll(svc, { from: done / perConversation, count });
    done += count;
    await captured(data);
    const sample = { done, mb: Math.round(svc.residentMb()), descriptors: svc.descriptors() };
    curve.push(sample);
    process.stdout.write(
      `${String(sample.done).padStart(8)}${String(sample.mb).padStart(8)}${String(sample.descriptors).padStart(13)}\n`,
    );
  }
  await sleep(IDLE_MS);
  const after = svc.descriptors();
  process.stdout.write(`idle again: ${Math.round(svc.residentMb())} MB, ${after} descriptors\n`);
  return [memoryProblem(curve.map(({ mb }) => mb)), descriptorProblem(before, after)].filter(
    (problem) => problem !== undefined,
  );
}

/**
 * Waits until the store has what was captured. The clients here never pause, so captures queue up in the
 * journal and in memory; a queue that is worked off is no leak.
 */
async function captured(data) {
  const until = performance.now() + CAPTURED_MS;
  while (waitingBytes(data) > 0) {
    if (performance.now() > until) throw new Error('captures are not stored');
    await sleep(100);
  }
}

function waitingBytes(data) {
  const journals = readdirSync(data).filter((name) => name.startsWith('outbox-'));
  const sizeOf = (name) => statSync(join(data, name), { throwIfNoEntry: false })?.size ?? 0;
  return journals.reduce((sum, name) => sum + sizeOf(name), 0);
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
      content: `Which port does the service ${conversation} listen on, and since when?`,
    },
  ];
  for (let step = 0; step < steps; step += 1) {
    const id = `call_${conversation}_${step}`;
    const output = Array.from(
      { length: 40 },
      (_, line) =>
        `service ${conversation} file ${step} line ${line} listens on port ${6_000 + line}`,
    ).join('\n');
    messages.push(
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'Bash', input: { id } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: output }] },
    );
  }
  const tools = [{ name: 'Bash', input_schema: { type: 'object' } }];
  return JSON.stringify({ model: 'soak', max_tokens: 64, tools, messages });
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
      const text = `The service listens on port ${count}, since build ${count * 7}.`;
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      outgoing.end(messageWith(text, `msg_${count}`));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

await run();
