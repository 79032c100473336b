import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import type { ProviderRecord } from '../support/scripted-provider/provider-record.ts';
import { runClaude, startClaude } from './support/claude-code.ts';
import { runCodex, startCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import { expectStablePrefix, insertedText } from './support/laws.ts';
import { type CallPair, type Stage, callPairs, openStage } from './support/stage.ts';
import {
  FACT,
  LAST_STEP,
  QUESTION,
  ROUNDS,
  SECRET_OF_FACT,
  TOOL_SESSION,
} from './support/story.ts';

const CLIENTS = {
  claude: {
    installed: await installedClient('claude'),
    list: 'messages',
    run: runClaude,
    start: startClaude,
  },
  codex: {
    installed: await installedClient('codex'),
    list: 'input',
    run: runCodex,
    start: startCodex,
  },
} as const;

// A question that is answered from memory, and then a long tool loop that carries the memory along.
const PROMPT = `${QUESTION} ${TOOL_SESSION}`;

describe.each(['claude', 'codex'] as const)('the provider’s prompt cache under %s', (name) => {
  const { installed, list, run, start } = CLIENTS[name];

  beforeEach((context: TestContext) => {
    if (installed.missing !== undefined) context.skip(installed.missing);
  });

  test('keeps its prefix over 22 rounds that carry a recalled block, with the proxy killed half-way and started again', async () => {
    const stage = await openStage();
    await run(installed, stage, { prompt: FACT });
    const from = stage.provider.records.length;
    const program = start(installed, stage, { prompt: `${PROMPT} [[gap=5]]` });
    await stage.provider.until((records) => records.length >= from + ROUNDS / 2);
    await stage.svc.kill();
    await stage.restartSvc();
    const session = await program.ended;
    expect(session.stdout, session.stderr).toContain(LAST_STEP);
    expectStableSession(sessionPairs(stage, from), list);
  });
});

function sessionPairs(stage: Stage, from: number): readonly CallPair[] {
  return callPairs(stage).filter(({ record }) => record.n > from && isAnswered(record));
}

function isAnswered({ decision }: ProviderRecord): boolean {
  return decision !== undefined;
}

function expectStableSession(pairs: readonly CallPair[], list: 'messages' | 'input'): void {
  expect(pairs.length).toBeGreaterThanOrEqual(ROUNDS);
  const [first] = pairs;
  if (first === undefined) throw new Error('the session made no call');
  const block = insertedText(first);
  expect(block).toContain(SECRET_OF_FACT);
  for (const pair of pairs) expect(insertedText(pair)).toBe(block);
  const { items, prefixes } = expectStablePrefix(pairs, list);
  // All items of all requests but the last: none was passed over as not comparable.
  expect(items).toBeGreaterThan(ROUNDS * ROUNDS);
  // Codex only appends; Claude Code moves its cache mark in every request.
  if (list === 'input') expect(prefixes).toBe(pairs.length - 1);
}
