import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import { StrictProvider } from '../support/strict-provider/strict-provider.ts';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import type { ProgramEnd } from './support/program.ts';
import { type Stage, openStage } from './support/stage.ts';
import {
  FACT,
  LAST_STEP,
  QUESTION,
  ROUNDS,
  SECRET_OF_FACT,
  TOOL_SESSION,
} from './support/story.ts';

/**
 * Real clients with models whose thinking is bound to everything before it, and a provider that checks it
 * (test/support/strict-provider): with svc and without, nothing may be refused and no thinking lost.
 */

type Way = 'without svc' | 'through svc';
const WAYS: readonly Way[] = ['without svc', 'through svc'];

const CLAUDE = await installedClient('claude');
const CODEX = await installedClient('codex');

interface Asked {
  readonly prompt: string;
  readonly isResumed?: boolean;
  /** The other model of the client. */
  readonly isOther?: boolean;
}

const CLIENTS = {
  claude: {
    installed: CLAUDE,
    ask: (stage: Stage, way: Way, { prompt, isResumed, isOther }: Asked): Promise<ProgramEnd> =>
      runClaude(CLAUDE, stage, {
        prompt,
        args: [
          '--model',
          isOther === true ? 'claude-fable-5-2' : 'claude-opus-5-5',
          ...(isResumed === true ? ['--continue'] : []),
        ],
        ...(way === 'without svc' && { env: { ANTHROPIC_BASE_URL: stage.provider.url } }),
      }),
  },
  codex: {
    installed: CODEX,
    ask: (stage: Stage, way: Way, { prompt, isResumed, isOther }: Asked): Promise<ProgramEnd> =>
      runCodex(CODEX, stage, {
        prompt,
        ...(isResumed !== undefined && { isResumed }),
        model: isOther === true ? 'gpt-6.2' : 'gpt-6',
        ...(way === 'without svc' && { url: stage.provider.url }),
      }),
  },
} as const;

describe.each(['claude', 'codex'] as const)('bound thinking under %s', (name) => {
  const { installed, ask } = CLIENTS[name];

  beforeEach((context: TestContext) => {
    if (installed.missing !== undefined) context.skip(installed.missing);
  });

  test.each(WAYS)('is kept over a tool loop and a resumed session, %s', async (way) => {
    const { stage, strict } = await openStrict();
    await ask(stage, way, { prompt: FACT });
    const session = await ask(stage, way, { prompt: `${QUESTION} ${TOOL_SESSION}` });
    expect(session.stdout, session.stderr).toContain(LAST_STEP);
    const resumed = await ask(stage, way, { prompt: END, isResumed: true });
    expect(resumed.stdout, resumed.stderr).toContain('All is said.');
    const last = lastBody(stage);
    expect(last.split(/"signature":|"encrypted_content":/).length).toBeGreaterThan(ROUNDS);
    expect(last.includes(SECRET_OF_FACT)).toBe(way === 'through svc');
    expect(strict).toMatchObject(NOTHING_LOST);
  });

  test.each(WAYS)('is kept behind recalled blocks of two prompts, %s', async (way) => {
    const { stage, strict } = await openStrict();
    await ask(stage, way, { prompt: FACT });
    await ask(stage, way, { prompt: `Paint the mountains in winter. ${STEPS}` });
    await ask(stage, way, { prompt: `${QUESTION} ${STEPS}`, isResumed: true });
    await ask(stage, way, { prompt: END, isResumed: true });
    const blocks = lastBody(stage).split('<svc-memory ').length - 1;
    expect(blocks).toBe(way === 'through svc' ? 2 : 0);
    expect(strict).toMatchObject(NOTHING_LOST);
  });

  test.each(WAYS)('is kept when the model changes and comes back, %s', async (way) => {
    const { stage, strict } = await openStrict();
    await ask(stage, way, { prompt: FACT });
    await ask(stage, way, { prompt: `${QUESTION} ${STEPS}` });
    await ask(stage, way, { prompt: `Go on. ${STEPS}`, isResumed: true, isOther: true });
    await ask(stage, way, { prompt: END, isResumed: true });
    expect(strict.refusals).toEqual([]);
    expect(strict.lost.filter(({ reason }) => reason === 'prefix')).toEqual([]);
  });

  test.each(WAYS)('is kept over 40 rounds of long outputs, %s', async (way) => {
    const { stage, strict } = await openStrict();
    const plan = '[[plan=bash:seq {i}00000 {i}02000*40]]';
    const session = await ask(stage, way, { prompt: `Count. ${plan} ` });
    expect(session.stdout, session.stderr).toContain('4002000');
    expect(strict).toMatchObject(NOTHING_LOST);
  });

  test('is kept when the person goes on without svc, and comes back', async () => {
    const { stage, strict } = await openStrict();
    await ask(stage, 'through svc', { prompt: `Begin. ${STEPS}` });
    await ask(stage, 'without svc', { prompt: `Go on. ${STEPS}`, isResumed: true });
    await ask(stage, 'through svc', { prompt: END, isResumed: true });
    expect(strict).toMatchObject(NOTHING_LOST);
  });

  test.each(['through svc'])(
    'is lost once, when the person leaves svc behind a recalled block, and comes back %s',
    async () => {
      const { stage, strict } = await openStrict();
      await ask(stage, 'through svc', { prompt: FACT });
      await ask(stage, 'through svc', { prompt: `${QUESTION} ${STEPS}` });
      const away = await ask(stage, 'without svc', { prompt: `Go on. ${STEPS}`, isResumed: true });
      expect(away, away.stderr).toMatchObject({ status: 0 });
      const lost = new Set(strict.lost.map(({ seal }) => seal));
      const refusals = strict.refusals.length;
      expect(lost.size + refusals).toBeGreaterThan(0);
      const back = await ask(stage, 'through svc', { prompt: END, isResumed: true });
      expect(back.stdout, back.stderr).toContain('All is said.');
      expect(strict.refusals).toHaveLength(refusals);
      expect(strict.lost.filter(({ seal }) => !lost.has(seal))).toEqual([]);
    },
  );
});

const STEPS = '[[plan=bash:ls*3]]';
const END = '[[final=All is said.]]';

const NOTHING_LOST = { refusals: [], lost: [] };

async function openStrict(): Promise<{ stage: Stage; strict: StrictProvider }> {
  const stage = await openStage();
  const strict = new StrictProvider();
  stage.provider.options = { strict };
  return { stage, strict };
}

function lastBody(stage: Stage): string {
  return stage.provider.records.at(-1)?.body.toString() ?? '';
}
