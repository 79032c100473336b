import { type TestContext, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ProviderRecord } from '../support/scripted-provider/provider-record.ts';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import { expectSameAnswers, expectSameBodies, insertedText } from './support/laws.ts';
import { type Stage, callPairs, evidence, openStage } from './support/stage.ts';
import { FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';
import {
  closeSession,
  missingTerminal,
  openClaude,
  openCodex,
} from './support/terminal-session.ts';
import { headerIn } from './support/wire-message.ts';

const clients = { claude: await installedClient('claude'), codex: await installedClient('codex') };
const noTerminal = missingTerminal();

describe('on a terminal', () => {
  beforeEach((context: TestContext) => {
    const missing = noTerminal ?? clients.claude.missing ?? clients.codex.missing;
    if (missing !== undefined) context.skip(missing);
  });

  test('Claude Code’s title call is sent on untouched, and its conversation gets the memory', async () => {
    const stage = await openStage();
    await runClaude(clients.claude, stage, { prompt: FACT });
    const from = stage.provider.records.length;
    const program = openClaude(clients.claude, stage, QUESTION);
    onTestFinished(() => closeSession(program));
    await expectTitleAndRecall(
      { stage, from },
      ({ headers }) => headerIn(headers, 'x-claude-code-request-class') === 'auxiliary',
    );
  });

  test('Codex’s title call is sent on untouched, and its conversation gets the memory', async () => {
    const stage = await openStage();
    await runCodex(clients.codex, stage, { prompt: FACT });
    const from = stage.provider.records.length;
    const program = openCodex(clients.codex, stage, QUESTION);
    onTestFinished(() => closeSession(program));
    await expectTitleAndRecall(
      { stage, from },
      ({ headers }) =>
        headerIn(headers, 'x-codex-turn-metadata')?.includes('"thread_title"') === true,
    );
  });
});

/** The two calls of one typed text come on two connections within 2 ms, in either order. */
async function expectTitleAndRecall(
  { stage, from }: { readonly stage: Stage; readonly from: number },
  isTitle: (record: ProviderRecord) => boolean,
): Promise<void> {
  const pairs = await vi.waitFor(
    () => {
      const made = callPairs(stage).filter(({ record }) => record.n > from && record.isOver);
      if (made.length < 2) throw new Error('the calls of the session are not over');
      return made;
    },
    { timeout: 120_000, interval: 100 },
  );
  const titles = pairs.filter(({ record }) => isTitle(record));
  const asked = pairs.find(({ record }) => !isTitle(record));
  expect(titles.length).toBe(1);
  expectSameBodies(titles);
  expectSameAnswers(titles);
  for (const title of titles) {
    expect(evidence(title, 'x-svc-memory-state')).toBe('skipped_side_call');
  }
  if (asked === undefined) throw new Error('the question did not reach the provider');
  expect(insertedText(asked)).toContain(SECRET_OF_FACT);
}
