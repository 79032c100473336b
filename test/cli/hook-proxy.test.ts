import { expect, onTestFinished, test, vi } from 'vitest';
import { pathTokenOf } from '../../src/core/http/local-token.ts';
import { HOOK_PATH } from '../../src/core/http/routes.ts';
import { runCli, runHere } from '../support/cli.ts';
import { LOCAL_TOKEN, validConfig } from '../support/config.ts';
import { freePort } from '../support/free-port.ts';
import { HookStage } from '../support/hook-stage.ts';

/** Hooks beside a proxy that runs: it answers them over loopback. */

vi.setConfig({ testTimeout: 60_000 });

const FACT = 'The staging database of the marmalade service listens on port 6543, not on 5432.';
const NOTED = 'The marmalade staging database uses port 6543; the old value 5432 was wrong.';
const ASKED = 'Which port does the staging database of the marmalade service use?';
const PROMPT = { prompt_id: 'p1', prompt: ASKED };

/** A stage with the fact, and what starts its proxy. */
async function stageWithProxy() {
  const stage = new HookStage();
  const port = await freePort();
  // A busy machine must not make svc silent.
  stage.configure({ ...validConfig(), proxy: { port, recallMs: 10_000 } });
  await stage.tell('s1', FACT, NOTED);
  const options = { home: stage.home, env: stage.environment };
  const start = async (): Promise<void> => {
    expect((await runCli(['start', '--detach'], options)).code).toBe(0);
    onTestFinished(async () => {
      await runHere(['stop'], options);
    });
    // On a busy machine the first answers are later than a hook waits.
    let asked = 0;
    const warm = async () => {
      asked += 1;
      expect(await stage.claude('UserPromptSubmit', `warm-${asked}`, PROMPT)).toContain('6543');
    };
    await vi.waitFor(warm, { timeout: 30_000, interval: 200 });
  };
  return { stage, port, start };
}

/** Without the code, which differs with the session. */
function words(block: string): string {
  return block.replace(/ id="[a-z]{8}"/, '');
}

test('a running proxy answers a hook with the block that the hook would find itself', async () => {
  const { stage, start } = await stageWithProxy();
  const brief = await stage.claude('SessionStart', 's2', { source: 'startup' });
  const block = await stage.claude('UserPromptSubmit', 's3', PROMPT);
  expect(block).toContain('6543');
  await start();
  let opened = 0;
  stage.openStore = async () => {
    opened += 1;
    throw new Error('The proxy has the answer.');
  };
  const briefOver = await stage.claude('SessionStart', 's4', { source: 'startup' });
  expect(words(briefOver)).toBe(words(brief));
  const over = await stage.claude('UserPromptSubmit', 's5', PROMPT);
  expect(words(over)).toBe(words(block));
  // What one of them has said the other does not say again.
  expect(await stage.claude('UserPromptSubmit', 's3', { ...PROMPT, prompt_id: 'p2' })).toBe('');
  expect(opened).toBe(0);
});

test('without the local token nobody gets a memory from the proxy', async () => {
  const { stage, port, start } = await stageWithProxy();
  await start();
  const request = { client: 'claude', event: 'UserPromptSubmit', folder: stage.project };
  const ask = async (session: string, headers: Record<string, string>, path = HOOK_PATH) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ ...request, input: { session_id: session, prompt: ASKED } }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  const right = { authorization: `Bearer ${LOCAL_TOKEN}` };
  const wrong = { authorization: `Bearer ${LOCAL_TOKEN.slice(0, -1)}x` };
  const refused = [
    await ask('a', {}),
    await ask('b', wrong),
    await ask('c', { ...right, origin: 'https://example.com' }),
    // The token in a client's file is for model routes alone.
    await ask('d', {}, `/t/${pathTokenOf(LOCAL_TOKEN)}${HOOK_PATH}`),
    await ask('e', { authorization: `Bearer ${pathTokenOf(LOCAL_TOKEN)}` }),
  ];
  for (const { status, text } of refused) {
    expect(status).toBeGreaterThanOrEqual(401);
    expect(text).not.toMatch(/marmalade|6543|svc-memory/);
  }
  const given = await ask('f', right);
  expect(given.status).toBe(200);
  expect(given.text).toContain('6543');
});
