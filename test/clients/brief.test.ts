import { describe, expect, test } from 'vitest';
import { runClaude } from './support/claude-code.ts';
import { runCodex } from './support/codex.ts';
import { type InstalledClient, installedClient } from './support/installed-client.ts';
import { expectStablePrefix, insertedText } from './support/laws.ts';
import type { ProgramEnd } from './support/program.ts';
import { type CallPair, callPairs, openStage, type Stage } from './support/stage.ts';

/**
 * The brief opens a session of a real client, once. Its bytes come again in every later request of
 * the session, also after a restart of svc, a resume and a fork, and none is made anew.
 */

const claude = await installedClient('claude');
const codex = await installedClient('codex');

const HEAD = 'Earlier sessions here:';
const LEARNT =
  'Why does the walrus gateway drop its last packet? [[think=0]] [[final=Root cause: the walrus gateway closes its socket before the last packet is flushed.]]';

/** `more`: how the client goes on with the session; none: a new one. */
type Run = (stage: Stage, prompt: string, more?: 'resumed' | 'forked') => Promise<ProgramEnd>;

interface Client {
  readonly name: string;
  readonly installed: InstalledClient;
  readonly list: 'messages' | 'input';
  readonly run: Run;
  /** Only its window forks a session of Codex. */
  readonly forks: boolean;
}

const CLAUDE_ARGS = { resumed: ['--continue'], forked: ['--continue', '--fork-session'] };

const CLIENTS: readonly Client[] = [
  {
    name: 'Claude Code',
    installed: claude,
    list: 'messages',
    run: (stage, prompt, more) =>
      runClaude(claude, stage, { prompt, args: more === undefined ? [] : CLAUDE_ARGS[more] }),
    forks: true,
  },
  {
    name: 'Codex',
    installed: codex,
    list: 'input',
    run: (stage, prompt, more) => runCodex(codex, stage, { prompt, isResumed: more !== undefined }),
    forks: false,
  },
];

function mainCalls(stage: Stage, from: number): readonly CallPair[] {
  return callPairs(stage).filter(({ record }) => {
    const { tools = [] } = record.json as { tools?: readonly unknown[] };
    return record.n > from && record.decision !== undefined && tools.length > 0;
  });
}

describe.each(CLIENTS)('under $name', ({ installed, list, run, forks }) => {
  test('a brief arrives once, and its bytes are replayed over restart, resume and fork', async (context) => {
    if (installed.missing !== undefined) context.skip(installed.missing);
    const stage = await openStage();
    const step = async (...args: Parameters<Run> extends [Stage, ...infer Rest] ? Rest : never) => {
      const from = stage.provider.records.length;
      const ended = await run(stage, ...args);
      expect(ended, ended.stderr).toMatchObject({ status: 0 });
      return mainCalls(stage, from);
    };
    const restart = async (): Promise<void> => {
      await stage.svc.stop();
      await stage.restartSvc();
    };
    await step(LEARNT);
    await restart();

    const opened = await step('Write the changelog. [[plan=bash:echo one]] [[final=Written.]]');
    const [first] = opened;
    if (first === undefined) throw new Error('the session made no call');
    const block = insertedText(first);
    expect(block).toContain(HEAD);
    expect(block).toMatch(/- \d{4}-\d\d-\d\d: /);

    await restart();
    const resumed = await step('Go on. [[final=on]]', 'resumed');
    await restart();
    const again = await step('And push it. [[final=on]]', 'resumed');
    const forked = forks ? await step('Go on. [[final=on]]', 'forked') : [];
    const all = [...opened, ...resumed, ...again, ...forked];
    expect(all.length).toBeGreaterThanOrEqual(forks ? 5 : 4);
    // The same bytes in each, and nothing else was put in: no brief is made anew.
    for (const pair of all) expect(insertedText(pair)).toBe(block);
    expectStablePrefix([...opened, ...resumed, ...again], list);
  });
});
