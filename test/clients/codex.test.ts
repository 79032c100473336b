import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import { field, listField } from '../support/scripted-provider/loose-json.ts';
import type { ProviderRecord } from '../support/scripted-provider/provider-record.ts';
import { clientEnvironment } from './support/claude-code.ts';
import { type CodexStart, runCodex } from './support/codex.ts';
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

const codex = await installedClient('codex');

beforeEach((context: TestContext) => {
  if (codex.missing !== undefined) context.skip(codex.missing);
});

describe('Codex', () => {
  test('R12: completes a tool session of 22 rounds with its own bytes and a resumed one, every answer byte the provider’s', async () => {
    const stage = await openStage();
    const session = await runCodex(codex, stage, { prompt: TOOL_SESSION });
    expect(session, session.stderr).toMatchObject({ status: 0 });
    expect(session.stdout).toContain(LAST_STEP);
    // Nothing is to be recalled yet.
    expect(callPairs(stage).length).toBe(ROUNDS + 1);
    expectSameBodies(callPairs(stage));
    expect(stage.tap.exchanges.length).toBe(stage.provider.records.length);
    const resumed = await runCodex(codex, stage, {
      prompt: 'And once more. [[plan=bash:echo the resumed step]]',
      isResumed: true,
    });
    expect(resumed.stdout).toContain('the resumed step');
    const pairs = callPairs(stage);
    expect(pairs.length).toBe(ROUNDS + 3);
    expectSameAnswers(pairs);
    expectEvidence(pairs);
    expectKeysInPlace(stage);
  });

  test('R24: is given in a new conversation what an earlier one said, in its newest message alone; R8: recalls and stores nothing with x-svc-memory-mode: off, and stores nothing with read', async () => {
    const stage = await openStage();
    const off = { 'x-svc-memory-mode': 'off' };
    await runCodex(codex, stage, { prompt: FACT, headers: off });
    await stage.svc.stop();
    expect(isKept(stage, SECRET_OF_FACT)).toBe(false);
    await stage.restartSvc();
    await runCodex(codex, stage, { prompt: FACT });
    const asked = await ask(stage, { prompt: QUESTION });
    expect(asked.clientBody.includes(SECRET_OF_FACT)).toBe(false);
    expect(insertedText(asked)).toContain(SECRET_OF_FACT);
    const { input } = asked.record.json as { input: readonly unknown[] };
    const changed = changedItem(asked, 'input');
    expect(changed).toBe(input.length - 1);
    expect(field(input[changed], 'role')).toBe('user');
    expect(evidence(asked, 'x-svc-memory-state')).toBe('recalled');
    expectSameAnswers([asked]);
    const askedOff = await ask(stage, { prompt: QUESTION, headers: off });
    expectSameBodies([askedOff]);
    expect(evidence(askedOff, 'x-svc-memory-state')).toBe('off');
    const read = await ask(stage, {
      prompt: `${QUESTION} I am called otter-nine.`,
      headers: { 'x-svc-memory-mode': 'read' },
    });
    expect(insertedText(read)).toContain(SECRET_OF_FACT);
    await stage.svc.stop();
    expect(isKept(stage, SECRET_OF_FACT)).toBe(true);
    expect(isKept(stage, 'otter-nine')).toBe(false);
  });

  test('R4: a wrong token ends the run, and nothing reaches the provider', async () => {
    const stage = await openStage();
    const run = await runCodex(codex, stage, { prompt: 'hello', token: 'svc_local_wrong' });
    expect(run.status).not.toBe(0);
    // Codex tries six times whatever the answer says.
    for (const { answer } of stage.tap.exchanges) expect(answer?.startLine).toContain('401');
    expect(stage.provider.records).toEqual([]);
  });

  test('R5: is refused a WebSocket with 426 and goes on over HTTP at once', async () => {
    const stage = await openStage();
    const run = await runCodex(codex, stage, {
      prompt: 'Run it. [[plan=bash:echo over plain http]]',
      setup: 'websocket',
    });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain('over plain http');
    const upgrades = stage.tap.exchanges.filter(
      ({ request }) => headerIn(request.headers, 'upgrade') !== undefined,
    );
    // Any other answer makes it try seven times.
    expect(upgrades.length).toBe(1);
    expect(upgrades[0]?.answer?.startLine).toContain('426');
    expect(stage.provider.records.every(({ method }) => method === 'POST')).toBe(true);
  });

  test('has its zstd bodies decoded and sent on as they were before it compressed them', async () => {
    const stage = await openStage();
    const setup = 'signed-in';
    const run = await runCodex(codex, stage, {
      prompt: 'Run it. [[plan=bash:echo from a compressed body]]',
      setup,
    });
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(run.stdout).toContain('from a compressed body');
    const pairs = callPairs(stage);
    expect(pairs.length).toBe(2);
    for (const { exchange, record } of pairs) {
      expect(headerIn(exchange.request.headers, 'content-encoding')).toBe('zstd');
      expect(headerIn(record.headers, 'content-encoding')).toBeUndefined();
    }
    expectSameBodies(pairs);
    await runCodex(codex, stage, { prompt: FACT, setup });
    const asked = await ask(stage, { prompt: QUESTION, setup });
    expect(insertedText(asked)).toContain(SECRET_OF_FACT);
  });

  test('has its sub-agents’ calls sent on untouched', async () => {
    const stage = await openStage();
    await runCodex(codex, stage, { prompt: FACT });
    const task = `${QUESTION} <<plan=bash:echo in the sub task>>`;
    // Its main agent ends only when the sub-agent was heard.
    const wait = 'until test -e heard; do sleep 0.1; done';
    const prompt = `Delegate this. [[plan=task:${task}|bash:${wait}]]`;
    const running = runCodex(codex, stage, { prompt });
    await stage.provider.until((records) => records.some(isSubagent));
    writeFileSync(join(stage.project, 'heard'), '');
    const run = await running;
    expect(run, run.stderr).toMatchObject({ status: 0 });
    const subagents = callPairs(stage).filter(({ record }) => isSubagent(record));
    expect(subagents.length).toBeGreaterThanOrEqual(1);
    expectSameBodies(subagents);
  });

  test('works with nothing but what svc print-config codex and svc config token print', async () => {
    const stage = await openStage();
    const print = (...args: readonly string[]) => {
      const { program, env } = stage.svc;
      return String(spawnSync(process.execPath, [program, ...args], { env }).stdout);
    };
    const folder = join(stage.home, '.codex');
    mkdirSync(folder);
    const printed = print('print-config', 'codex');
    const chosen = printed.includes('model_provider =') ? '' : 'model_provider = "svc"\n';
    writeFileSync(join(folder, 'config.toml'), `model = "gpt-5"\n${chosen}${printed}`);
    const run = await runProgram({
      file: binaryOf(codex, 'codex'),
      args: ['exec', '--skip-git-repo-check', FACT],
      folder: stage.project,
      env: {
        ...clientEnvironment(stage),
        CODEX_HOME: folder,
        SVC_LOCAL_PROXY_TOKEN: print('config', 'token').trim(),
      },
    }).ended;
    expect(run, run.stderr).toMatchObject({ status: 0 });
    expect(stage.provider.records.map(({ status }) => status)).toEqual([200]);
  });
});

function isSubagent({ headers }: ProviderRecord): boolean {
  return headerIn(headers, 'x-openai-subagent') !== undefined;
}

/** A new conversation; its first call to the provider. */
async function ask(stage: Stage, start: CodexStart): Promise<CallPair> {
  const before = stage.provider.records.length;
  const run = await runCodex(codex, stage, start);
  expect(run, run.stderr).toMatchObject({ status: 0 });
  const asked = callPairs(stage).find(
    ({ record }) => record.n > before && listField(record.json, 'tools').length > 0,
  );
  if (asked === undefined) throw new Error('no call with tools reached the provider');
  return asked;
}
