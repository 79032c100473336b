import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, beforeEach, describe, expect, test } from 'vitest';
import { startClaude } from './support/claude-code.ts';
import { startCodex } from './support/codex.ts';
import { installedClient } from './support/installed-client.ts';
import { expectKeysInPlace } from './support/laws.ts';
import { type Stage, openStage } from './support/stage.ts';
import { ENDLESS, FACT, QUESTION, SECRET_OF_FACT } from './support/story.ts';
import { svcCommand } from './support/svc-command.ts';

const clients = { claude: await installedClient('claude'), codex: await installedClient('codex') };
const ARGS = {
  claude: (prompt: string) => ['-p', prompt],
  codex: (prompt: string) => ['exec', '--skip-git-repo-check', prompt],
} as const;
const START = { claude: startClaude, codex: startCodex } as const;

describe.each(['claude', 'codex'] as const)('svc run %s', (name) => {
  const client = clients[name];
  const run = (stage: Stage, args: readonly string[]) =>
    svcCommand(stage, client, ['run', name, '--', ...args]);

  beforeEach((context: TestContext) => {
    if (client.missing !== undefined) context.skip(client.missing);
  });

  test('a session through the proxy, with memory, and the client’s own files untouched', async () => {
    const stage = await openStage();
    const files = ownFiles(stage);
    const stated = await run(stage, ARGS[name](FACT)).ended;
    expect(stated, stated.stderr).toMatchObject({ status: 0 });
    const from = stage.provider.records.length;
    const asked = await run(stage, ARGS[name](QUESTION)).ended;
    expect(asked, asked.stderr).toMatchObject({ status: 0 });
    const bodies = stage.provider.records.slice(from).map(({ body }) => body.toString());
    expect(bodies.some((body) => body.includes(SECRET_OF_FACT))).toBe(true);
    expectKeysInPlace(stage);
    for (const { path, text } of files) expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('the exit code is the client’s', async () => {
    const stage = await openStage();
    const wrong = await run(stage, ['--no-such-option-of-any-client']).ended;
    expect(wrong.status).not.toBe(0);
    expect(wrong.status).not.toBeNull();
    expect(stage.provider.records).toEqual([]);
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    '%s reaches the client, which stops the provider and ends as by itself',
    async (signal) => {
      const stage = await openStage();
      const direct = START[name](client, stage, { prompt: ENDLESS });
      await stage.provider.until(([first]) => (first?.sent.length ?? 0) > 20);
      direct.child.kill(signal);
      const alone = await direct.ended;
      const from = stage.provider.records.length;
      const through = run(stage, ARGS[name](ENDLESS));
      await stage.provider.until((records) => (records[from]?.sent.length ?? 0) > 20);
      through.child.kill(signal);
      const end = await through.ended;
      await stage.provider.until((records) => records[from]?.isOver === true);
      expect(stage.provider.records[from]).toMatchObject({ isClientGone: true });
      // A shell says 128 and the signal's number for a program that a signal ended.
      const code = alone.status ?? 128 + (signal === 'SIGINT' ? 2 : 15);
      expect([end.status, end.signal]).toEqual([code, null]);
    },
  );
});

/** Settings that a person has, which `svc run` must neither need nor change. */
function ownFiles(stage: Stage): readonly { readonly path: string; readonly text: string }[] {
  const files = [
    { path: join(stage.home, '.claude', 'settings.json'), text: '{ "env": { "MINE": "1" } }' },
    { path: join(stage.home, '.codex', 'config.toml'), text: 'model = "gpt-5"\n' },
  ];
  mkdirSync(join(stage.home, '.claude'), { recursive: true });
  mkdirSync(join(stage.home, '.codex'), { recursive: true });
  for (const { path, text } of files) writeFileSync(path, text);
  return files;
}
