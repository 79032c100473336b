import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import { installedClient } from './support/installed-client.ts';
import {
  changedItem,
  expectEvidence,
  expectKeysInPlace,
  expectSameAnswers,
  expectSameBodies,
  expectStablePrefix,
  insertedText,
} from './support/laws.ts';
import { type SdkStart, runSdk } from './support/sdk.ts';
import type { SdkName } from './support/sdk-session.ts';
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

const clients = { sdk: await installedClient('sdk'), node24: await installedClient('node24') };

beforeEach((context: TestContext) => {
  const missing = clients.sdk.missing ?? clients.node24.missing;
  if (missing !== undefined) context.skip(missing);
});

const CALLERS: readonly SdkName[] = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'ai-anthropic',
  'ai-openai-responses',
  'ai-openai-chat',
];
const AGENTS = CALLERS.filter((sdk) => sdk.startsWith('ai-'));
const FORMS = [
  { form: 'streamed', isStreamed: true },
  { form: 'whole', isStreamed: false },
];

describe.each(CALLERS)('the SDK %s', (sdk) => {
  test.each(FORMS)(
    'is given in a new conversation what an earlier one said: $form',
    async ({ isStreamed }) => {
      const stage = await openStage();
      const stated = await callSdk(stage, { sdk, isStreamed, prompt: `${FACT} [[final=Noted.]]` });
      expectSameBodies([stated]);
      const asked = await callSdk(stage, { sdk, isStreamed, prompt: QUESTION });
      expect(insertedText(asked)).toContain(SECRET_OF_FACT);
      expect(evidence(asked, 'x-svc-memory-state')).toBe('recalled');
      // A Responses input that is one string has no list.
      const isText = sdk === 'openai-responses' && !isStreamed;
      if (!isText) expect(changedItem(asked, listOf(asked))).toBe(0);
      expectSameAnswers([stated, asked]);
      expectEvidence([stated, asked]);
      expectKeysInPlace(stage);
    },
  );

  test.each(FORMS)(
    'R8: recalls and stores nothing with x-svc-memory-mode: off: $form',
    async ({ isStreamed }) => {
      const stage = await openStage();
      const headers = { 'x-svc-memory-mode': 'off' };
      await callSdk(stage, { sdk, isStreamed, prompt: FACT });
      const prompt = `${QUESTION} I am called otter-nine.`;
      const asked = await callSdk(stage, { sdk, isStreamed, prompt, headers });
      expectSameBodies([asked]);
      expect(evidence(asked, 'x-svc-memory-state')).toBe('off');
      await stage.svc.stop();
      expect(isKept(stage, SECRET_OF_FACT)).toBe(true);
      expect(isKept(stage, 'otter-nine')).toBe(false);
    },
  );
});

describe.each(AGENTS)('an agent loop of %s', (sdk) => {
  test.each(FORMS)('goes 22 rounds with one memory in one place: $form', async ({ isStreamed }) => {
    const stage = await openStage();
    await callSdk(stage, { sdk, isStreamed, prompt: FACT });
    const from = stage.provider.records.length;
    const prompt = `${QUESTION} ${TOOL_SESSION}`;
    const { text } = await runSdk(clients, stage, { sdk, isStreamed, prompt });
    expect(text).toContain(`ran echo ${LAST_STEP}`);
    const pairs = callPairs(stage).filter(({ record }) => record.n > from);
    const [first] = pairs;
    expect(pairs.length).toBe(ROUNDS + 1);
    if (first === undefined) return;
    const block = insertedText(first);
    expect(block).toContain(SECRET_OF_FACT);
    for (const pair of pairs) expect(insertedText(pair)).toBe(block);
    expect(expectStablePrefix(pairs, listOf(first)).prefixes).toBe(ROUNDS);
    expectSameAnswers(pairs);
  });
});

describe('the SDKs', () => {
  test.each([
    { sdk: 'openai-models', says: 'gpt-5' },
    { sdk: 'anthropic-models', says: 'claude-sonnet-4-5' },
    { sdk: 'anthropic-count', says: /^\d+$/ },
  ] as const)('get $sdk as the provider says', async ({ sdk, says }) => {
    const stage = await openStage();
    const { text, stderr } = await runSdk(clients, stage, { sdk, isStreamed: false, prompt: FACT });
    expect(text, stderr).toMatch(says);
    expectSameBodies(callPairs(stage));
    expectSameAnswers(callPairs(stage));
  });

  test.each(['openai-chat', 'anthropic'] as const)(
    'R4: %s tries a wrong token once',
    async (sdk) => {
      const stage = await openStage();
      const token = 'svc_local_wrong';
      const run = await runSdk(clients, stage, { sdk, isStreamed: true, prompt: 'hello', token });
      expect(run.status).not.toBe(0);
      expect(run.stderr).toContain('AuthenticationError');
      expect(stage.tap.exchanges.length).toBe(1);
      expect(stage.provider.records).toEqual([]);
    },
  );

  test.each(['openai-chat', 'openai-responses', 'anthropic'] as const)(
    'R19: %s sees a stream that broke at the provider as broken',
    async (sdk) => {
      const stage = await openStage();
      stage.provider.failWith({ kind: 'cut', after: 3 });
      const run = await runSdk(clients, stage, { sdk, isStreamed: true, prompt: FACT });
      expect(run.status, run.text).not.toBe(0);
    },
  );
});

/** One call that must succeed; what both sides saw of it. */
async function callSdk(stage: Stage, start: SdkStart): Promise<CallPair> {
  const before = stage.provider.records.length;
  const run = await runSdk(clients, stage, start);
  expect(run, run.stderr).toMatchObject({ status: 0 });
  expect(run.text).not.toBe('');
  const pair = callPairs(stage).find(({ record }) => record.n > before);
  if (pair === undefined) throw new Error('the call did not reach the provider');
  return pair;
}

function listOf(pair: CallPair): 'messages' | 'input' {
  return pair.record.dialect === 'openai_responses' ? 'input' : 'messages';
}
