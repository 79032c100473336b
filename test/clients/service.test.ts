import { describe, expect, test } from 'vitest';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import { expectKeysInPlace, expectSameAnswers, insertedText } from './support/laws.ts';
import { runSdks } from './support/sdk.ts';
import { openServiceStage } from './support/service-stage.ts';
import { type CallPair, callPairs, evidence, type Stage } from './support/stage.ts';
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

/** Real clients with only base URL and key changed: a service in place of the provider. */

const claude = await installedClient('claude');
const codex = await installedClient('codex');
const sdks = { sdk: await installedClient('sdk'), node24: await installedClient('node24') };

function modelCalls(stage: Stage): readonly CallPair[] {
  return callPairs(stage).filter(({ record }) =>
    /\/(?:messages|responses|completions)(?:\?|$)/.test(record.path),
  );
}

/** Every answer is the provider's, and names a receipt. */
function expectServed(stage: Stage): readonly CallPair[] {
  const pairs = modelCalls(stage);
  expectSameAnswers(pairs);
  expectKeysInPlace(stage);
  for (const pair of pairs) {
    expect(evidence(pair, 'x-svc-receipt-id')).toMatch(/^rcpt_[0-9a-z]{26}$/);
    expect(evidence(pair, 'x-svc-local-proxy')).toBe(undefined);
  }
  return pairs;
}

describe('through a service', () => {
  test('Claude Code completes a tool session of 22 rounds, and session two recalls', async (context) => {
    if (claude.missing !== undefined) context.skip(claude.missing);
    const stage = await openServiceStage();
    const session = await runClaude(claude, stage, { prompt: TOOL_SESSION });
    expect(session, session.stderr).toMatchObject({ status: 0 });
    expect(session.stdout).toContain(LAST_STEP);
    expect(expectServed(stage).length).toBeGreaterThanOrEqual(ROUNDS);
    await runClaude(claude, stage, { prompt: `${FACT} [[final=Noted.]]` });
    await stage.models.service.flush();
    await runClaude(claude, stage, { prompt: QUESTION });
    const asked = expectServed(stage).at(-1);
    expect(asked?.forwardedBody.toString()).toContain(SECRET_OF_FACT);
  });

  // A round of Codex costs twice one of Claude Code, so the long session is Claude Code's.
  test('Codex completes a tool session of 8 rounds, and session two recalls', async (context) => {
    if (codex.missing !== undefined) context.skip(codex.missing);
    const stage = await openServiceStage();
    const session = await runCodex(codex, stage, { prompt: '[[plan=bash:echo step {i}*8]]' });
    expect(session, session.stderr).toMatchObject({ status: 0 });
    expect(session.stdout).toContain('step 8');
    expect(expectServed(stage).length).toBeGreaterThanOrEqual(8);
    await runCodex(codex, stage, { prompt: `${FACT} [[final=Noted.]]` });
    await stage.models.service.flush();
    await runCodex(codex, stage, { prompt: QUESTION });
    expect(modelCalls(stage).at(-1)?.forwardedBody.toString()).toContain(SECRET_OF_FACT);
  });

  test.each(['anthropic', 'openai-responses', 'openai-chat'] as const)(
    'the SDK %s is given what an earlier session said, streamed and whole',
    async (sdk) => {
      const missing = sdks.sdk.missing ?? sdks.node24.missing;
      if (missing !== undefined) throw new Error(missing);
      const stage = await openServiceStage();
      const told = await runSdks(sdks, stage, [
        { sdk, isStreamed: true, prompt: `${FACT} [[final=Noted.]]` },
        { sdk, isStreamed: false, prompt: `${OTHER_FACT} [[final=Noted.]]` },
      ]);
      expect(told, told.stderr).toMatchObject({ status: 0 });
      await stage.models.service.flush();
      const asked = await runSdks(sdks, stage, [
        { sdk, isStreamed: true, prompt: QUESTION },
        { sdk, isStreamed: false, prompt: OTHER_QUESTION },
      ]);
      expect(asked, asked.stderr).toMatchObject({ status: 0 });
      const [streamed, whole] = expectServed(stage).slice(-2);
      if (streamed === undefined || whole === undefined) throw new Error('a call is missing');
      expect(insertedText(streamed)).toContain(SECRET_OF_FACT);
      expect(insertedText(whole)).toContain(SECRET_OF_OTHER_FACT);
    },
  );
});
