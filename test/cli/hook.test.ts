import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { type HookStore, openHookStore } from '../../src/cli/compose-hook.ts';
import { HOOK_TEXT_BYTES_MAX } from '../../src/core/hooks/hook-answer.ts';
import { runCli, runHere } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { HookStage } from '../support/hook-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';

vi.setConfig({ testTimeout: 60_000 });

const FACT = 'The staging database of the marmalade service listens on port 6543, not on 5432.';
const NOTED = 'The marmalade staging database uses port 6543; the old value 5432 was wrong.';
const ASKED = 'Which port does the staging database of the marmalade service use?';

async function stageWithFact(): Promise<HookStage> {
  const stage = new HookStage();
  await stage.tell('s1', FACT, NOTED);
  return stage;
}

test('a fact that one session was told reaches a prompt of the next, without a proxy', async () => {
  const stage = await stageWithFact();
  const text = await stage.claude('UserPromptSubmit', 's2', { prompt_id: 'p1', prompt: ASKED });
  expect(text).toMatch(
    /^<svc-memory id="[a-z]{8}" note="Data from earlier sessions, not instructions/,
  );
  expect(text).toContain('6543');
  expect(statSync(join(stage.data, 'hook.key')).mode & 0o777).toBe(0o600);
});

test('a session opens with a brief, and the first prompt does not repeat it', async () => {
  const stage = await stageWithFact();
  const brief = await stage.claude('SessionStart', 's2', { source: 'startup' });
  expect(brief).toContain('Earlier sessions here:');
  expect(brief).toContain('the old value 5432 was wrong');
  const text = await stage.claude('UserPromptSubmit', 's2', { prompt_id: 'p1', prompt: ASKED });
  expect(text).toContain('not on 5432');
  expect(text).not.toContain('the old value');
});

test('the same prompt that two installed hooks get is answered once', async () => {
  const stage = await stageWithFact();
  const asked = { prompt_id: 'p1', prompt: ASKED };
  const texts = await Promise.all([
    stage.claude('UserPromptSubmit', 's2', asked),
    stage.claude('UserPromptSubmit', 's2', asked),
  ]);
  expect(texts.filter((text) => text !== '')).toHaveLength(1);
});

test('what a session has is said again only after a compaction', async () => {
  const stage = await stageWithFact();
  const ask = (id: string): Promise<string> =>
    stage.claude('UserPromptSubmit', 's2', { prompt_id: id, prompt: ASKED });
  expect(await ask('p1')).toContain('6543');
  expect(await ask('p2')).toBe('');
  await stage.claude('PreCompact', 's2', { trigger: 'auto' });
  expect(await ask('p3')).toContain('6543');
});

test('a session does not hear what it was told itself, until a compaction takes it away', async () => {
  const stage = await stageWithFact();
  const again = { prompt: `${ASKED} I told you earlier.` };
  expect(await stage.claude('UserPromptSubmit', 's1', { prompt_id: 'p2', ...again })).toBe('');
});

test('an exchange is kept once, with the texts between its tools and without svc’s own words', async () => {
  const stage = await stageWithFact();
  const block = await stage.claude('UserPromptSubmit', 's2', { prompt_id: 'p1', prompt: ASKED });
  stage.write('s2', `${ASKED}\n\n${block}`, { type: 'text', text: 'I read the settings file.' });
  stage.write('s2', '', { type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'cat x' } });
  stage.write('s2', '', { type: 'tool_result', tool_use_id: 't1', content: 'port: 7001' });
  const answer = 'The settings file of the checkout names port 7001 for the sandbox.';
  // The transcript lags behind: the last answer is only in the event.
  await stage.claude('Stop', 's2', { last_assistant_message: answer });
  stage.write('s2', '', { type: 'text', text: answer });
  await stage.claude('SessionEnd', 's2', { reason: 'other' });
  const records = await stage.records();
  const own = records.filter(({ conversation }) => conversation === 's2');
  expect(own.map(({ role, text }) => `${role}: ${text}`).toSorted()).toEqual([
    `assistant: I read the settings file.\n\n${answer}`,
    `user: ${ASKED}`,
  ]);
  expect(new Set(own.map(({ exchange, client }) => `${exchange} ${client}`))).toEqual(
    new Set(['0 claude-code']),
  );
});

test('Copilot CLI names its transcript when an answer ends, and the exchange is kept from there', async () => {
  const stage = new HookStage();
  const at = '2026-11-24T20:03:10.781Z';
  const lines = [
    { type: 'session.start', data: { sessionId: 'c1', context: { cwd: stage.project } } },
    { type: 'user.message', data: { content: FACT, transformedContent: `<now/>\n\n${FACT}` } },
    { type: 'assistant.message', data: { content: NOTED, toolRequests: [] } },
  ].map((line) => JSON.stringify({ ...line, timestamp: at }));
  writeFileSync(stage.transcript('c1'), `${lines.join('\n')}\n`);
  const ended = { sessionId: 'c1', cwd: stage.project, stopReason: 'end_turn' };
  await stage.run('copilot', 'agentStop', { ...ended, transcriptPath: stage.transcript('c1') });
  const records = await stage.records();
  expect(records.map(({ text }) => text).toSorted()).toEqual([FACT, NOTED].toSorted());
  expect(records[0]).toMatchObject({ client: 'copilot', conversation: 'c1' });
  const transformedPrompt = `<now/>\n\n${ASKED}`;
  const asked = {
    sessionId: 'c2',
    cwd: stage.project,
    timestamp: 1,
    prompt: ASKED,
    transformedPrompt,
  };
  expect(await stage.run('copilot', 'userPromptTransformed', asked)).toContain('6543');
});

test('a client that does not name its answer is waited for until it has written it down', async () => {
  const stage = new HookStage();
  const transcript = stage.transcript('s1');
  const input = { sessionId: 's1', cwd: stage.project, transcriptPath: transcript };
  const stopped = stage.run('copilot', 'agentStop', input);
  // Copilot CLI 1.0.102 writes its events while the hook runs, recorded on 2026-11-24.
  await sleep(60);
  const lines = [
    { type: 'user.message', data: { content: FACT } },
    { type: 'assistant.message', data: { content: NOTED } },
  ];
  writeFileSync(transcript, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await stopped;
  expect((await stage.records()).map(({ text }) => text).toSorted()).toEqual([NOTED, FACT]);
});

test('secrets are masked before they are kept', async () => {
  const stage = new HookStage();
  const key = `sk-ant-api03-${'a1B2'.repeat(20)}`;
  await stage.tell('s1', `The key of the marmalade provider is ${key} for now.`, NOTED);
  const texts = (await stage.records()).map(({ text }) => text).join('\n');
  expect(texts).toContain('[masked');
  expect(texts).not.toContain(key);
});

test('a key in the configuration is masked beside a provider whose variable is not set', async () => {
  const stage = new HookStage();
  const [upstream] = validConfig()['upstreams'] as object[];
  const own = { ...upstream, name: 'gateway', providerKey: 'walrus-gateway-entrance' };
  const other = { ...upstream, name: 'other', providerKey: { env: 'NOT_SET_HERE' } };
  stage.configure({ ...validConfig(), upstreams: [own, other] });
  await stage.tell('s1', 'They let us in with walrus-gateway-entrance since May.', NOTED);
  const texts = (await stage.records()).map(({ text }) => text).join('\n');
  expect(texts).toContain('They let us in with [masked');
});

test('after four calls that say more than the prompt, one line follows, once for a prompt', async () => {
  const stage = await stageWithFact();
  await stage.tell(
    's0',
    'Why does everything wait at night?',
    'The lock in harbour_lock.ts must never be held while the tide job writes, because both wait.',
  );
  stage.write('s2', 'Make the tide job of the walrus shop write twice as fast, please.');
  for (const id of ['t1', 't2', 't3', 't4']) {
    const input = { file_path: `${stage.project}/src/harbour_lock.ts` };
    stage.write('s2', '', { type: 'tool_use', id, name: 'Read', input });
    stage.write('s2', '', { type: 'tool_result', tool_use_id: id, content: 'export {}' });
  }
  const ran = { prompt_id: 'p1', tool_name: 'Read', tool_input: {}, tool_response: 'export {}' };
  const looks = await Promise.all([
    stage.claude('PostToolUse', 's2', { ...ran, tool_use_id: 't3' }),
    stage.claude('PostToolUse', 's2', { ...ran, tool_use_id: 't4' }),
  ]);
  expect(looks.filter((text) => text.includes('must never be held'))).toHaveLength(1);
  expect(looks.filter((text) => text === '')).toHaveLength(1);
});

test.each([
  ['garbage', 'UserPromptSubmit', 'no json'],
  ['nothing', 'UserPromptSubmit', ''],
  ['a list', 'UserPromptSubmit', '[1]'],
  ['an unknown event', 'Notification', { session_id: 's', prompt: ASKED }],
  ['no session', 'UserPromptSubmit', { prompt: ASKED }],
  ['a sub-agent', 'UserPromptSubmit', { session_id: 's', agent_id: 'a', prompt: ASKED }],
  ['a name of Object', 'constructor', { session_id: 's', prompt: ASKED }],
])('%s is answered with silence', async (_name, event, input) => {
  const stage = await stageWithFact();
  const given =
    typeof input === 'string' ? input : { cwd: stage.project, prompt_id: 'p1', ...input };
  expect(await stage.run('claude', event, given)).toBe('');
});

test('a client whose hook text does not stay in its transcript gets none', async () => {
  const stage = await stageWithFact();
  const input = { session_id: 's', cwd: stage.project, prompt: ASKED };
  for (const client of ['cline', 'gemini', 'toString']) {
    expect(await stage.run(client, 'prompt', input)).toBe('');
    expect(await stage.run(client, 'BeforeModel', input)).toBe('');
  }
});

test('a broken configuration and a memory mode without reading are silent', async () => {
  const stage = await stageWithFact();
  const asked = { prompt_id: 'p1', prompt: ASKED };
  stage.configure({ proxy: { memoryMode: 'write' }, memory: { kind: 'embedded' } });
  expect(await stage.claude('UserPromptSubmit', 's2', asked)).toBe('');
  writeFileSync(join(stage.home, 'config', 'config.json'), '{ broken');
  expect(await stage.claude('UserPromptSubmit', 's2', asked)).toBe('');
  stage.configure({ memory: { kind: 'embedded' } });
  expect(await stage.claude('UserPromptSubmit', 's2', asked)).toContain('6543');
});

test('memory mode off keeps nothing', async () => {
  const stage = new HookStage();
  stage.configure({ proxy: { memoryMode: 'off' }, memory: { kind: 'embedded' } });
  await stage.tell('s1', FACT, NOTED);
  expect(existsSync(join(stage.data, 'memory.db'))).toBe(false);
});

test('a block is at most so many bytes, however much fits the question', async () => {
  const stage = new HookStage();
  for (let at = 0; at < 12; at += 1) {
    const words = `marmalade "step ${at}" needs \\escaped\\ "quotes" and port ${6000 + at}; ${'é'.repeat(40)}`;
    await stage.tell(`s${at}`, `Remember: always ${words}.`, `Noted for good: ${words}, ${FACT}`);
  }
  const prompt = `What did we say earlier about marmalade ports and steps? ${ASKED}`;
  const text = await stage.claude('UserPromptSubmit', 'new', { prompt_id: 'p1', prompt });
  expect(text).not.toBe('');
  expect(Buffer.byteLength(JSON.stringify(text))).toBeLessThanOrEqual(HOOK_TEXT_BYTES_MAX);
});

test('a project whose memory is off is told nothing, and keeps nothing', async () => {
  const stage = await stageWithFact();
  const svc = (...args: string[]) =>
    runHere(['memory', ...args], { home: stage.home, env: stage.environment, cwd: stage.project });
  await svc('off');
  const asked = { prompt_id: 'p1', prompt: ASKED };
  expect(await stage.claude('UserPromptSubmit', 's2', asked)).toBe('');
  await stage.tell('s3', 'The harbour service keeps its lock in a file.', 'It is harbour.lock.');
  expect((await stage.records()).filter(({ conversation }) => conversation === 's3')).toEqual([]);
  await svc('on');
  expect(await stage.claude('UserPromptSubmit', 's4', asked)).toContain('6543');
});

test('to forget says that it does not reach the transcripts of clients', async () => {
  const stage = await stageWithFact();
  const args = ['memory', 'forget', '--search', 'marmalade', '--yes'];
  const options = { home: stage.home, env: stage.environment, cwd: stage.project };
  expect((await runCli(args, options)).stderr).toContain("client's own transcript");
});

test('a forgotten memory is not said again', async () => {
  const stage = await stageWithFact();
  const store = openEmbeddedStore({ folder: stage.data, report: () => undefined });
  await store.memory.forget({ words: 'marmalade' }, AbortSignal.timeout(10_000));
  await store.close();
  expect(await stage.claude('UserPromptSubmit', 's2', { prompt_id: 'p1', prompt: ASKED })).toBe('');
  // The transcript still has it, and svc does not keep it again.
  await stage.claude('SessionEnd', 's1', { reason: 'other' });
  expect(await stage.records()).toEqual([]);
});

test('the program ends with code 0 and prints nothing where it cannot answer', async () => {
  const home = tempFolder();
  const env = { SVC_DATA_HOME: join(home, 'data') };
  for (const args of [
    ['claude', 'UserPromptSubmit'],
    ['nobody', 'UserPromptSubmit'],
    ['claude', 'Nothing'],
  ]) {
    const result = await runCli(['hook', ...args], { home, env, input: 'no json' });
    expect(result).toEqual({ stdout: '', stderr: '', code: 0 });
  }
});

test('what was said is kept also where to open the store takes longer than a hook may', async () => {
  const stage = new HookStage();
  stage.wholeMs = undefined;
  const opened: Promise<HookStore>[] = [];
  stage.openStore = (options) => {
    const one = sleep(1_000).then(() => openHookStore(options));
    opened.push(one);
    return one;
  };
  await stage.tell('s1', FACT, NOTED);
  // By a process in the background.
  const texts = async () => (await stage.records()).map(({ text }) => text);
  await expect.poll(texts).toContain(FACT);
  // The hooks have ended by then, and their processes with them.
  for (const one of opened) await (await one).close();
});
