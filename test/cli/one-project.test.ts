import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BIN, tempFolder } from '../support/cli.ts';
import { git, newRepository, requestFrom } from '../support/claude-request.ts';
import { PROVIDER_KEY, validConfig } from '../support/config.ts';
import { answerTo } from '../support/dialect-wire.ts';
import { homeWith } from '../support/home.ts';
import { startProxyProcess } from '../support/proxy-process.ts';
import { startRecordingProvider } from '../support/story.ts';

/** The built program, and what Claude Code sends from the folders of a repository. */

const FACT =
  'The gateway of the walrus shop listens on port 6431 because 6430 belongs to the mailer.';
const QUESTION = 'Which port does the gateway of the walrus shop listen on?';

test('a worktree recalls what a subfolder of its repository was told, and a repository of that name does not', async () => {
  const provider = await startRecordingProvider();
  provider.reply = (request) => answerTo(request, { text: 'Noted, I will use that port.' });
  const upstream = { name: 'anthropic', apiStyle: 'anthropic_messages', baseUrl: provider.url };
  const config = validConfig();
  const home = homeWith({
    ...config,
    // A project of one fact is young: its share says nothing yet. A busy machine may take longer than a person waits.
    proxy: { port: 8765, recallQuietPercent: 0, recallMs: 10_000 },
    upstreams: [{ ...upstream, providerKey: PROVIDER_KEY, allowPrivate: true }],
  });
  const data = join(home, 'data');
  const base = realpathSync(tempFolder());
  const shop = newRepository(join(base, 'one', 'shop'));
  const other = newRepository(join(base, 'two', 'shop'));
  git(shop, 'worktree', 'add', '-q', join(base, 'tree'));
  const proxy = await startProxyProcess(home, { SVC_DATA_HOME: data });
  const send = async (folder: string, session: number, prompt: string): Promise<string> => {
    const request = requestFrom(folder, session, prompt);
    const answer = await fetch(`${proxy.url}/v1/messages?beta=true`, {
      method: 'POST',
      ...request,
    });
    await answer.text();
    expect(answer.status).toBe(200);
    return provider.seen.at(-1)?.body.toString() ?? '';
  };
  const listed = (): readonly { readonly space: string }[] => {
    const env = { PATH: process.env['PATH'], HOME: home, SVC_DATA_HOME: data };
    const words = [BIN, 'memory', 'list', '--json'];
    return JSON.parse(execFileSync(process.execPath, words, { env, encoding: 'utf8' })) as [];
  };
  await send(join(shop, 'packages', 'api'), 0, FACT);
  await expect.poll(() => listed().length, { timeout: 30_000 }).toBeGreaterThan(0);
  const inTree = await send(join(base, 'tree'), 1, QUESTION);
  expect(inTree).toContain('<svc-memory');
  expect(inTree).toContain('6431');
  const elsewhere = await send(other, 2, QUESTION);
  expect(elsewhere).not.toContain('6431');
  expect(elsewhere).not.toContain('<svc-memory');
  const own = FACT.replace('6431', '7002');
  await send(other, 2, own);
  await expect
    .poll(() => new Set(listed().map(({ space }) => space)).size, { timeout: 30_000 })
    .toBe(2);
  const again = await send(join(shop, 'packages'), 3, QUESTION);
  expect(again).toContain('6431');
  expect(again).not.toContain('7002');
}, 120_000);
