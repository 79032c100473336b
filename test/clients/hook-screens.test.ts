import { readFileSync } from 'node:fs';
import { type TestContext, beforeEach, expect, test, vi } from 'vitest';
import { findTranscripts } from '../../src/adapters/foreign/transcript-files.ts';
import { missingTmux } from '../support/tmux.ts';
import {
  CLAUDE_MODEL,
  CODEX_MODEL,
  conversationCalls,
  type HookedStage,
  openHookedStage,
} from './support/hooked-client.ts';
import { installedClient } from './support/installed-client.ts';
import { openClaudeScreen, openCodexScreen } from './support/screen-session.ts';
import { FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';

/** What a person sees of svc's hooks at each event in the window of a real client; docs/hooks.md says the same. */

const CLAUDE = await installedClient('claude');
const CODEX = await installedClient('codex');

const ASKED = `${QUESTION} [[plan=bash:echo step {i}*5]]`;

beforeEach((context: TestContext) => {
  const missing = missingTmux();
  if (missing !== undefined) context.skip(missing);
});

test('Claude Code shows nothing of svc until it is asked', async (context) => {
  if (CLAUDE.missing !== undefined) return context.skip(CLAUDE.missing);
  const stage = await stageWithFact('claude');
  const session = await openClaudeScreen(CLAUDE, stage, { model: CLAUDE_MODEL });
  await session.say(ASKED);
  await session.shows('Result: step 5');
  // A hook that runs stands beside the sign of work, and goes with it.
  await expect.poll(() => tracesOn(session.screen(), stage), { timeout: 30_000 }).toEqual([]);
  expectMemory(stage, 'claude-code');
  session.press('C-o');
  await session.shows('1 PostToolUse hook ran');
  expect(session.screen()).not.toContain(SECRET_OF_FACT);
  session.press('C-o');
  await session.say('/compact');
  await session.shows('completed successfully');
  const [line = '', ...others] = tracesOn(session.screen(), stage);
  expect(line).toMatch(/^PreCompact \[.* hook claude PreCompact .*\] completed successfully$/);
  expect(others).toEqual([]);
});

test('Codex asks once whether it may trust the hooks, and shows nothing of svc behind that', async (context) => {
  if (CODEX.missing !== undefined) return context.skip(CODEX.missing);
  const stage = await stageWithFact('codex');
  const session = await openCodexScreen(CODEX, stage, { model: CODEX_MODEL });
  await session.shows('Hooks need review');
  // A busy machine shows the question before Codex reads keys.
  await vi.waitFor(
    () => {
      session.press('2');
      expect(session.screen()).toContain('› 2. Trust all and continue');
    },
    { timeout: 30_000, interval: 1_000 },
  );
  session.press('Enter');
  await session.shows('Ask Codex to do anything');
  await session.say(ASKED);
  await session.idle();
  await session.shows('step 5');
  await vi.waitFor(() => expect(tracesOn(session.screen(), stage)).toEqual([]));
  expectMemory(stage, 'codex');
});

async function stageWithFact(name: 'claude' | 'codex'): Promise<HookedStage> {
  const stage = await openHookedStage();
  for (const words of [
    ['memory', 'add', FACT],
    ['connect', name, '--hooks', '--yes'],
  ]) {
    // oxlint-disable-next-line no-await-in-loop -- As a person types them.
    expect(await stage.type(...words)).toMatchObject({ status: 0 });
  }
  return stage;
}

/** The lines that speak of svc or of hooks. The folder of the test has svc in its name. */
function tracesOn(screen: string, { project }: HookedStage): readonly string[] {
  const lines = screen.replaceAll(project, '').split('\n');
  return lines.map((line) => line.trim()).filter((line) => /svc|hook|walrus/i.test(line));
}

/** The memory came with the prompt, and can be found in the client's own file of the session. */
function expectMemory(stage: HookedStage, client: 'claude-code' | 'codex'): void {
  expect(conversationCalls(stage).at(-1)?.body.toString()).toContain(SECRET_OF_FACT);
  const file = findTranscripts(client, { home: stage.home, environment: {} }).at(-1);
  const text = readFileSync(file?.path ?? '', 'utf8');
  expect(text).toMatch(/<svc-memory [^]*walrus-seven[^]*<\/svc-memory>/);
}
