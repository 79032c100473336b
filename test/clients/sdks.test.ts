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
import { type SdkStart, runSdk, runSdks } from './support/sdk.ts';
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
  OTHER_FACT,
  OTHER_QUESTION,
  QUESTION,
  ROUNDS,
  SECRET_OF_FACT,
  SECRET_OF_OTHER_FACT,
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
/** Each with a fact and a space of its own: what one form has stated, the other must not bring. */
const FORMS = [
  { isStreamed: true, fact: FACT, question: QUESTION, secret: SECRET_OF_FACT, own: 'otter-nine' },
  {
    isStreamed: false,
    fact: OTHER_FACT,
    question: OTHER_QUESTION,
    secret: SECRET_OF_OTHER_FACT,
    own: 'lynx-four',
  },
] as const;

describe.each(CALLERS)('the SDK %s', (sdk) => {
  test('R8: is given in a new conversation what an earlier one said, and nothing with x-svc-memory-mode: off, streamed and whole', async () => {
    const stage = await openStage();
    const stated = await callSdk(
      stage,
      FORMS.map(({ isStreamed, fact }) => {
        return {
          sdk,
          isStreamed,
          prompt: `${fact} [[final=Noted.]]`,
          headers: spaceOf(isStreamed),
        };
      }),
    );
    expect(stated.length).toBe(FORMS.length);
    expectSameBodies(stated);
    const isAgent = AGENTS.includes(sdk);
    const calls = FORMS.map(({ isStreamed, question, own }): readonly SdkStart[] => {
      const call = { sdk, isStreamed, headers: spaceOf(isStreamed) };
      const off = { ...call.headers, 'x-svc-memory-mode': 'off' };
      return [
        { ...call, prompt: question },
        { ...call, prompt: `${question} I am called ${own}.`, headers: off },
        ...(isAgent ? [{ ...call, prompt: `${question} ${TOOL_SESSION}` }] : []),
      ];
    });
    const answered = await callSdk(stage, calls.flat());
    for (const { isStreamed, secret } of FORMS) {
      const ofForm = answered.length / FORMS.length;
      const from = isStreamed ? 0 : ofForm;
      const [asked, off, ...loop] = answered.slice(from, from + ofForm);
      if (asked === undefined || off === undefined) throw new Error('a call is missing');
      expect(insertedText(asked)).toContain(secret);
      expect(evidence(asked, 'x-svc-memory-state')).toBe('recalled');
      // A Responses input that is one string has no list.
      const isText = sdk === 'openai-responses' && !isStreamed;
      if (!isText) expect(changedItem(asked, listOf(asked))).toBe(0);
      expectSameAnswers([...stated, asked]);
      expectEvidence([...stated, asked]);
      expectSameBodies([off]);
      expect(evidence(off, 'x-svc-memory-state')).toBe('off');
      if (isAgent) expectLoop(loop, secret);
    }
    expectKeysInPlace(stage);
    await stage.svc.stop();
    for (const { secret, own } of FORMS) {
      expect(isKept(stage, secret)).toBe(true);
      expect(isKept(stage, own)).toBe(false);
    }
  });
});

/** One form names its space, the other has the one that svc finds. */
function spaceOf(isStreamed: boolean): Readonly<Record<string, string>> {
  return isStreamed ? { 'x-svc-memory-space': 'project/streamed' } : {};
}

/** The agent loop of an SDK: 22 rounds with one memory in one place. */
function expectLoop(pairs: readonly CallPair[], secret: string): void {
  const [first] = pairs;
  if (first === undefined) throw new Error('the loop did not reach the provider');
  expect(pairs.length).toBe(ROUNDS + 1);
  const block = insertedText(first);
  expect(block).toContain(secret);
  for (const pair of pairs) expect(insertedText(pair)).toBe(block);
  expect(expectStablePrefix(pairs, listOf(first)).prefixes).toBe(ROUNDS);
  expectSameAnswers(pairs);
}

describe('the SDKs', () => {
  test('get models and token counts as the provider says', async () => {
    const stage = await openStage();
    const start = { isStreamed: false, prompt: FACT };
    const { texts, stderr } = await runSdks(clients, stage, [
      { ...start, sdk: 'openai-models' },
      { ...start, sdk: 'anthropic-models' },
      { ...start, sdk: 'anthropic-count' },
    ]);
    expect(texts, stderr).toEqual([
      expect.stringMatching('gpt-5'),
      expect.stringMatching('claude-sonnet-4-5'),
      expect.stringMatching(/^\d+$/),
    ]);
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

/** Calls that must succeed, agent loops to their last step; what both sides saw of them. */
async function callSdk(
  stage: Stage,
  starts: readonly SdkStart[],
): Promise<readonly [CallPair, ...CallPair[]]> {
  const before = stage.provider.records.length;
  const run = await runSdks(clients, stage, starts);
  expect(run, run.stderr).toMatchObject({ status: 0 });
  expect(run.texts).not.toContain('');
  for (const [at, { prompt }] of starts.entries()) {
    if (prompt.includes(TOOL_SESSION)) expect(run.texts[at]).toContain(`ran echo ${LAST_STEP}`);
  }
  const [first, ...others] = callPairs(stage).filter(({ record }) => record.n > before);
  if (first === undefined) throw new Error('the call did not reach the provider');
  return [first, ...others];
}

function listOf(pair: CallPair): 'messages' | 'input' {
  return pair.record.dialect === 'openai_responses' ? 'input' : 'messages';
}
