import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import { startClaude } from './support/claude-code.ts';
import { startCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import type { Program } from './support/program.ts';
import { type Stage, callPairs, isKept, openStage } from './support/stage.ts';
import { ENDLESS } from './support/story.ts';

const clients = {
  claude: await installedClient('claude'),
  codex: await installedClient('codex'),
};

describe.each(['claude', 'codex'] as const)(
  'a person who stops %s in the middle of an answer',
  (name) => {
    beforeEach((context: TestContext) => {
      const { missing } = clients[name];
      if (missing !== undefined) context.skip(missing);
    });

    test('R21: stops the provider too, and the half answer is not kept as one', async () => {
      const stage = await openStage();
      const program = start(name, stage);
      await stage.provider.until(([record]) => (record?.sent.length ?? 0) > 20);
      program.child.kill('SIGINT');
      await stage.provider.until(([record]) => record?.isOver === true);
      expect(stage.provider.records[0]).toMatchObject({ isClientGone: true });
      await program.ended;
      const [pair] = callPairs(stage);
      const got = pair?.clientAnswer.toString() ?? '';
      expect(got).not.toBe('');
      expect(pair?.providerAnswer.toString().startsWith(got)).toBe(true);
      await stage.svc.stop();
      expect(isKept(stage, 'lorem ipsum')).toBe(false);
    });
  },
);

function start(name: keyof typeof clients, stage: Stage): Program {
  const run = name === 'claude' ? startClaude : startCodex;
  return run(clients[name], stage, { prompt: ENDLESS });
}
