import { expect, test, vi } from 'vitest';
import { asRecord, asText } from '../../src/core/bytes/json-fields.ts';
import { CUT_TOKENS_MIN } from '../../src/core/hooks/shell-output.ts';
import { estimateTextTokens } from '../../src/core/bytes/tokens.ts';
import { runCli, runHere } from '../support/cli.ts';
import { HookStage } from '../support/hook-stage.ts';

/** `hookCut`: a hook cuts the middle out of a shell's long output before the client sends it for the first time. */

vi.setConfig({ testTimeout: 60_000 });

const ERROR = 'error: the harbour lock is held by tide.ts';
const LONG = Array.from({ length: 1_200 }, (_, at) =>
  at === 700 ? ERROR : `step ${at + 1} of the build is done`,
).join('\n');

function stageWithCut(config: object = {}): HookStage {
  const stage = new HookStage();
  stage.configure({ proxy: { hookCut: true }, memory: { kind: 'embedded' }, ...config });
  return stage;
}

function bash(stdout: string, more: object = {}) {
  return {
    tool_name: 'Bash',
    tool_use_id: 't1',
    tool_input: { command: 'npm run build' },
    tool_response: { stdout, stderr: 'a warning', interrupted: false, isImage: false },
    ...more,
  };
}

/** What Claude Code is told to send in place of the output; undefined for nothing. */
async function cutOf(stage: HookStage, ran: object): Promise<Record<string, unknown> | undefined> {
  const place = { session_id: 's1', cwd: stage.project, hook_event_name: 'PostToolUse' };
  const printed = await stage.run('claude', 'PostToolUse', { ...place, ...ran });
  if (printed === '') return undefined;
  const { updatedToolOutput } = asRecord(asRecord(JSON.parse(printed))['hookSpecificOutput']);
  return asRecord(updatedToolOutput);
}

test('a long output keeps its beginning, its errors and its end, and the command reads the rest', async () => {
  const stage = stageWithCut();
  const cut = await cutOf(stage, bash(LONG));
  expect(cut).toMatchObject({ stderr: 'a warning', interrupted: false, isImage: false });
  const text = asText(cut?.['stdout']);
  const [head = '', tail = ''] = text.split(/\n\[svc left out [^\n]+\n/);
  expect(LONG.startsWith(`${head}\n`)).toBe(true);
  expect(tail).toContain(`701: ${ERROR}`);
  expect(LONG.endsWith(tail.split('[The end of the output:]\n')[1] ?? '?')).toBe(true);
  expect(estimateTextTokens(text)).toBeLessThan(CUT_TOKENS_MIN / 3);
  const [, from, to, ref = '', lines = ''] =
    /left out lines (\d+) to (\d+) of 1200.*(m_[a-z2-7]{16}) --lines (\S+),/.exec(text) ?? [];
  const options = { home: stage.home, env: stage.environment, cwd: stage.project };
  const read = await runHere(['memory', 'get', ref, '--lines', lines], options);
  expect(read.stdout).toContain(`step ${from} of the build is done\n`);
  const rest = await runHere(['memory', 'get', ref, '--lines', `${to}-${to}`], options);
  expect(rest.stdout).toContain(LONG.split('\n')[Number(to) - 1]);
  const whole = await runCli(['memory', 'get', ref, '--all'], options);
  expect(whole.stdout.trimEnd()).toBe(LONG);
  // An output is no memory: it is neither listed nor recalled.
  expect(await stage.records()).toEqual([]);
});

test('it is off until a person turns it on', async () => {
  const stage = new HookStage();
  expect(await cutOf(stage, bash(LONG))).toBeUndefined();
});

const SECRET = `sk-ant-api03-${'a1B2'.repeat(20)}`;
const FOUR_THOUSAND = LONG.slice(0, 12_000);

test.each([
  ['of another tool', { ...bash(LONG), tool_name: 'Read' }],
  ['of a file that the command reads', bash(LONG, { tool_input: { command: 'cat src/a.ts' } })],
  ['of at most 4,000 tokens', bash(FOUR_THOUSAND)],
  ['with a secret in it', bash(`${LONG}\nkey: ${SECRET}`)],
  ['with a private part', bash(`${LONG}\n<private>`)],
  ['of one line', bash('x1 '.repeat(12_000))],
  [
    'that the client has cut',
    bash('', { tool_response: { stdout: LONG, persistedOutputPath: '/t' } }),
  ],
  ['that is a picture', bash('', { tool_response: { stdout: LONG, isImage: true } })],
])('an output %s is sent whole', async (_name, ran) => {
  expect(estimateTextTokens(FOUR_THOUSAND)).toBeLessThanOrEqual(CUT_TOKENS_MIN);
  expect(await cutOf(stageWithCut(), ran)).toBeUndefined();
});

test.each([
  ['the memory may not be written', { proxy: { hookCut: true, memoryMode: 'read' } }],
  [
    'the memory is a service',
    { memory: { kind: 'hosted', baseUrl: 'https://memory.example', serviceKey: 'svc_key_test' } },
  ],
])('an output is sent whole where %s', async (_name, config) => {
  expect(await cutOf(stageWithCut(config), bash(LONG))).toBeUndefined();
});

test('an output is sent whole where the memory does not hold it, or fails', async () => {
  for (const keepOutput of [() => Promise.resolve(undefined), () => Promise.reject(new Error())]) {
    const stage = stageWithCut();
    const { openStore } = stage;
    stage.openStore = async (options) => ({ ...(await openStore(options)), keepOutput });
    // oxlint-disable-next-line no-await-in-loop -- One store after the other.
    expect(await cutOf(stage, bash(LONG))).toBeUndefined();
  }
});

test('each client gets it in its own form, and Codex, which takes none, gets nothing', async () => {
  const stage = stageWithCut();
  const place = { session_id: 's1', cwd: stage.project };
  const toolResult = { resultType: 'success', textResultForLlm: LONG };
  const copilot = { sessionId: 's1', cwd: stage.project, toolName: 'bash', toolResult };
  const args = { toolArgs: { command: 'npm run build' } };
  const { modifiedResult } = asRecord(
    JSON.parse(await stage.run('copilot', 'postToolUse', { ...copilot, ...args })),
  );
  expect(modifiedResult).toMatchObject({ resultType: 'success' });
  expect(asRecord(modifiedResult)['textResultForLlm']).toContain('[svc left out lines');
  const ran = { tool_name: 'bash', tool_input: { command: 'npm test' }, tool_response: LONG };
  for (const client of ['opencode', 'pi']) {
    // oxlint-disable-next-line no-await-in-loop -- They share a store.
    const said = JSON.parse(await stage.run(client, 'tool', { ...place, ...ran })) as object;
    expect(said).toMatchObject({ text: '', output: expect.stringContaining('[svc left out') });
  }
  expect(await stage.run('codex', 'PostToolUse', { ...place, ...bash(LONG) })).toBe('');
});
