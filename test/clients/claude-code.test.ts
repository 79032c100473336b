import { spawnSync } from 'node:child_process';
import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import { field, listField } from '../support/scripted-provider/loose-json.ts';
import { type ClaudeStart, clientEnvironment, runClaude } from './support/claude-code.ts';
import { binaryOf, installedClient } from './support/installed-client.ts';
import {
  changedItem,
  expectEvidence,
  expectKeysInPlace,
  expectSameAnswers,
  expectSameBodies,
  insertedText,
} from './support/laws.ts';
import { runProgram } from './support/program.ts';
import {
  type CallPair,
  type Stage,
  callPairs,
  evidence,
  isKept,
  openStage,
} from './support/stage.ts';
import {
  FACT,
  LAST_STEP,
  QUESTION,
  ROUNDS,
  SECRET_OF_FACT,
  TOOL_SESSION,
} from './support/story.ts';
import { headerIn } from './support/wire-message.ts';

const claude = await installedClient('claude');

beforeEach((context: TestContext) => {
  if (claude.missing !== undefined) context.skip(claude.missing);
});

describe('Claude Code', () => {
  test('R12: completes a tool session of 22 rounds with its own bytes and a resumed one, every answer byte the provider’s', async () => {
    const stage = await openStage();
    const session = await runClaude(claude, stage, { prompt: TOOL_SESSION });
    expect(session, session.stderr).toMatchObject({ status: 0 });
    expect(session.stdout).toContain(LAST_STEP);
    // Nothing is to be recalled yet.
    expect(callPairs(stage).length).toBeGreaterThan(ROUNDS);
    expectSameBodies(callPairs(stage));
    // Every call arrived once: no answer made the client ask again.
    expect(stage.tap.exchanges.length).toBe(stage.provider.records.length);
    const resumed = await runClaude(claude, stage, {
      prompt: 'And once more. [[plan=bash:echo the resumed step]]',
      args: ['-c'],
    });
    expect(resumed.stdout).toContain('the resumed step');
    const pairs = modelCalls(stage);
    expect(pairs.length).toBeGreaterThanOrEqual(ROUNDS + 3);
    expectSameAnswers(pairs);
    expectEvidence(pairs);
    expectKeysInPlace(stage);
  });

  test('in its simple mode shares the memory of its project with an ordinary session', async () => {
    const stage = await openStage();
    const env = { CLAUDE_CODE_SIMPLE: '1' };
    expect(await runClaude(claude, stage, { prompt: FACT, env })).toMatchObject({ status: 0 });
    const ordinary = await ask(stage, QUESTION);
    expect(insertedText(ordinary)).toContain(SECRET_OF_FACT);
    const simple = await ask(stage, `${QUESTION} Say it again.`, { env });
    expect(insertedText(simple)).toContain(SECRET_OF_FACT);
  });

  test('R24: is given in a new conversation what an earlier one said, in its newest message alone; R25: not what another project said', async () => {
    const stage = await openStage();
    await runClaude(claude, stage, { prompt: FACT, headers: modeHeader('write') });
    const asked = await ask(stage, QUESTION);
    expect(asked.clientBody.includes(SECRET_OF_FACT)).toBe(false);
    expect(insertedText(asked)).toContain(SECRET_OF_FACT);
    const { messages } = asked.record.json as { messages: readonly unknown[] };
    const changed = changedItem(asked, 'messages');
    const users = messages.flatMap((it, at) => (field(it, 'role') === 'user' ? [at] : []));
    expect(changed).toBe(users.at(-1));
    expect(JSON.stringify(field(asked.record.json, 'system'))).not.toContain(SECRET_OF_FACT);
    expect(evidence(asked, 'x-svc-memory-state')).toBe('recalled');
    expectSameAnswers([asked]);
    // What is only written is not recalled in the same call.
    const written = await ask(stage, QUESTION, { headers: modeHeader('write') });
    expectSameBodies([written]);
    expect(evidence(written, 'x-svc-memory-state')).toBe('write_only');
    const project = stage.newFolder('another-project');
    await runClaude(claude, stage, { prompt: QUESTION, project });
    expect(modelCalls(stage).at(-1)?.forwardedBody.includes(SECRET_OF_FACT)).toBe(false);
  });

  test('R8: recalls and stores nothing with x-svc-memory-mode: off, and stores nothing with read', async () => {
    const stage = await openStage();
    await runClaude(claude, stage, { prompt: FACT, headers: modeHeader('off') });
    await stage.svc.stop();
    expect(isKept(stage, SECRET_OF_FACT)).toBe(false);
    await stage.restartSvc();
    await runClaude(claude, stage, { prompt: FACT });
    const asked = await ask(stage, QUESTION, { headers: modeHeader('off') });
    expectSameBodies([asked]);
    expect(evidence(asked, 'x-svc-memory-mode')).toBe('off');
    expect(evidence(asked, 'x-svc-memory-state')).toBe('off');
    const headers = modeHeader('read');
    const read = await ask(stage, `${QUESTION} I am called otter-nine.`, { headers });
    expect(insertedText(read)).toContain(SECRET_OF_FACT);
    expect(evidence(read, 'x-svc-memory-mode')).toBe('read');
    await stage.svc.stop();
    expect(isKept(stage, SECRET_OF_FACT)).toBe(true);
    expect(isKept(stage, 'otter-nine')).toBe(false);
  });

  test('R4: a wrong token ends the run after one attempt, and nothing reaches the provider', async () => {
    const stage = await openStage();
    const run = await runClaude(claude, stage, { prompt: 'hello', token: 'svc_local_wrong' });
    expect(run.status).not.toBe(0);
    // Without x-should-retry it would try eight times, for three minutes.
    expect(stage.tap.exchanges.map(({ answer }) => answer?.startLine.slice(9, 12))).toEqual([
      '401',
    ]);
    expect(stage.provider.records).toEqual([]);
  });

  test('has its sub-agents’ calls sent on untouched, with nothing recalled or stored', async () => {
    const stage = await openStage();
    await runClaude(claude, stage, { prompt: FACT });
    const task = `${QUESTION} Your name is otter-nine. <<plan=bash:echo in the sub task>>`;
    const run = await runClaude(claude, stage, { prompt: `Delegate this. [[plan=task:${task}]]` });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    const subagents = modelCalls(stage).filter(
      ({ record }) => headerIn(record.headers, 'x-claude-code-agent-id') !== undefined,
    );
    expect(subagents.length).toBeGreaterThanOrEqual(2);
    expectSameBodies(subagents);
    expectSameAnswers(subagents);
    for (const call of subagents) {
      expect(evidence(call, 'x-svc-memory-state')).toBe('skipped_side_call');
    }
  });

  test('has its token counts relayed with its own bytes, and its compaction sent on whole and untouched', async () => {
    const stage = await openStage();
    await runClaude(claude, stage, { prompt: FACT });
    await runClaude(claude, stage, { prompt: '/compact', args: ['-c'] });
    const compactions = modelCalls(stage).filter(
      ({ record }) => headerIn(record.headers, 'x-claude-code-request-class') === 'compaction',
    );
    expect(compactions.length).toBeGreaterThan(0);
    expectSameBodies(compactions);
    expectSameAnswers(compactions);
    await runClaude(claude, stage, { prompt: '/context' });
    const counts = callPairs(stage).filter(({ record }) => record.path.endsWith('/count_tokens'));
    expect(counts.length).toBeGreaterThan(0);
    expectSameBodies(counts);
    expectSameAnswers(counts);
  });

  test('works with nothing but what svc print-config claude prints', async () => {
    const stage = await openStage();
    const { program, env } = stage.svc;
    const printed = spawnSync(process.execPath, [program, 'print-config', 'claude'], { env });
    const script = `eval "$1"; shift; exec "$@"`;
    const run = await runProgram({
      file: '/bin/sh',
      args: ['-c', script, 'sh', String(printed.stdout), binaryOf(claude, 'claude'), '-p', FACT],
      folder: stage.project,
      env: { ...clientEnvironment(stage), CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    }).ended;
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(stage.provider.records.filter(({ status }) => status === 200).length).toBeGreaterThan(0);
  });
});

function modeHeader(mode: string): readonly string[] {
  return [`x-svc-memory-mode: ${mode}`];
}

/** A new conversation; the main call that carries the question. */
async function ask(
  stage: Stage,
  question: string,
  { headers = [], env = {} }: Pick<ClaudeStart, 'headers' | 'env'> = {},
): Promise<CallPair> {
  const before = stage.provider.records.length;
  const run = await runClaude(claude, stage, { prompt: question, headers, env });
  expect(run, run.stderr).toMatchObject({ status: 0 });
  const asked = modelCalls(stage).find(
    ({ record }) => record.n > before && listField(record.json, 'tools').length > 0,
  );
  if (asked === undefined) throw new Error('no call with tools reached the provider');
  return asked;
}

function modelCalls(stage: Stage): readonly CallPair[] {
  return callPairs(stage).filter(({ record }) => record.path === '/v1/messages');
}
