import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { BIN } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { answerTo } from '../support/dialect-wire.ts';
import { homeWith } from '../support/home.ts';
import { startProxyProcess } from '../support/proxy-process.ts';
import { startRecordingProvider } from '../support/story.ts';
import { FACTS, recordOf } from '../support/records.ts';
import { longOutput } from '../support/tool-session.ts';

// By hand for longer: SVC_TEST_IMPORT_CONVERSATIONS=10.
const CONVERSATIONS = Number(process.env['SVC_TEST_IMPORT_CONVERSATIONS'] ?? '1');
const REQUESTS = 40;
const SESSIONS = CONVERSATIONS * REQUESTS * 60;
const MODULES = [
  'parser',
  'router',
  'indexer',
  'gateway',
  'mailer',
  'scanner',
  'planner',
  'exporter',
];

/** Of the one module that a conversation asks about. */
function moduleOf(conversation: number): { readonly name: string; readonly fact: string } {
  const name = `${MODULES[conversation % MODULES.length]}${conversation}`;
  return { name, fact: `The ${name} listens on port ${6000 + conversation}.` };
}

/** Sessions as a client keeps them on this machine. */
function writeTranscripts(home: string): void {
  const folder = join(home, '.claude', 'projects', '-work-other');
  mkdirSync(folder, { recursive: true });
  for (let session = 0; session < SESSIONS; session += 1) {
    const lines = Array.from({ length: 12 }, (_, at) => {
      const role = at % 2 === 0 ? 'user' : 'assistant';
      const content = longOutput(`Session ${session} part ${at}`, 150);
      const timestamp = new Date(Date.UTC(2026, 1, 1) + session * 60_000 + at * 1000);
      return JSON.stringify({
        type: role,
        cwd: '/home/ada/other',
        sessionId: `s${session}`,
        timestamp: timestamp.toISOString(),
        message: { role, content },
      });
    });
    writeFileSync(join(folder, `s${session}.jsonl`), `${lines.join('\n')}\n`);
  }
}

function startImport(home: string, env: Record<string, string>): ChildProcess {
  const words = ['memory', 'import', '--from', 'claude-code', '--yes', '--json'];
  const child = spawn(process.execPath, [BIN, ...words], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** A tool loop that asks something new now and then: the history up to request number `count`. */
function messagesOf(conversation: number, count: number): readonly unknown[] {
  const messages: unknown[] = [];
  for (let at = 0; at < count; at += 1) {
    if (at % 5 === 0) {
      if (at > 0) messages.push({ role: 'assistant', content: `Part ${at} is done.` });
      messages.push({
        role: 'user',
        content: `Which port does the ${moduleOf(conversation).name} listen on? (step ${at})`,
      });
      continue;
    }
    const call = {
      type: 'tool_use',
      id: `c${at}`,
      name: 'Bash',
      input: { command: `cat ${at}.ts` },
    };
    messages.push({ role: 'assistant', content: [call] });
    const content = outputOf(at);
    const result = { type: 'tool_result', tool_use_id: `c${at}`, content };
    messages.push({ role: 'user', content: [result] });
  }
  return messages;
}

function outputOf(round: number): string {
  return longOutput(`file-${round}.ts`, 1_500);
}

/** The places of a history's tool outputs. */
function roundsOf(count: number): readonly number[] {
  return Array.from({ length: count }, (_, at) => at).filter((at) => at % 5 !== 0);
}

function wholeOutputs(body: string, count: number): readonly number[] {
  return roundsOf(count).filter((at) => body.includes(`file-${at}.ts line 149 `));
}

test('while transcripts are imported no block vanishes and no left-out output comes back', async () => {
  const provider = await startRecordingProvider();
  provider.reply = (request) => answerTo(request, { text: 'Done.' });
  const upstream = { name: 'anthropic', apiStyle: 'anthropic_messages', baseUrl: provider.url };
  const home = homeWith({
    ...validConfig(),
    upstreams: [{ ...upstream, providerKey: PROVIDER_KEY, allowPrivate: true }],
  });
  const env = { SVC_DATA_HOME: join(home, 'data') };
  writeTranscripts(home);
  const store = openEmbeddedStore({ folder: env.SVC_DATA_HOME, report: () => undefined });
  const known = Array.from({ length: CONVERSATIONS }, (_, at) => moduleOf(at).fact);
  const facts = [...known, ...FACTS].map((text) => recordOf(text, { conversation: text }));
  await store.memory.capture(facts, AbortSignal.timeout(30_000));
  await store.close();
  const proxy = await startProxyProcess(home, env);
  const states: string[] = [];
  const send = async (conversation: number, count: number): Promise<string> => {
    const answer = await fetch(`${proxy.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': LOCAL_TOKEN,
        'x-svc-memory-space': 'project',
        'x-claude-code-session-id': `session-${conversation}`,
      },
      body: JSON.stringify({
        model: 'test-model',
        max_tokens: 1024,
        tools: [{ name: 'Bash', input_schema: { type: 'object' } }],
        messages: messagesOf(conversation, count),
      }),
    });
    await answer.text();
    const names = ['memory-state', 'continuity-state', 'elided-items'];
    states.push(names.map((name) => answer.headers.get(`x-svc-${name}`)).join(' '));
    return provider.seen.at(-1)?.body.toString() ?? '';
  };

  // The start of a process is not measured here.
  await expect.poll(() => send(0, 1)).toContain(moduleOf(0).fact);
  const imported = startImport(home, env);
  const cameBack: string[] = [];
  for (let conversation = 0; conversation < CONVERSATIONS; conversation += 1) {
    let out: ReadonlySet<number> = new Set();
    for (let count = 1; count <= REQUESTS; count += 1) {
      // oxlint-disable-next-line no-await-in-loop -- A tool loop.
      const body = await send(conversation, count);
      const state = `at ${count}: ${states.at(-1)}`;
      if (!body.includes(moduleOf(conversation).fact)) cameBack.push(`no block ${state}`);
      const whole = wholeOutputs(body, count);
      cameBack.push(...whole.filter((at) => out.has(at)).map((at) => `output ${at} ${state}`));
      out = new Set(roundsOf(count).filter((at) => out.has(at) || !whole.includes(at)));
      // oxlint-disable-next-line no-await-in-loop -- A tool takes a while.
      await wait(150);
    }
    expect(out.size).toBeGreaterThan(4);
  }
  expect(cameBack).toEqual([]);
  // The import was at work all the time.
  expect(imported.exitCode).toBe(null);
}, 600_000);
