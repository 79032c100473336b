import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BIN, tempFolder } from '../support/cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';
import { answerTo } from '../support/dialect-wire.ts';
import { homeWith } from '../support/home.ts';
import { startProxyProcess } from '../support/proxy-process.ts';
import { startRecordingProvider } from '../support/story.ts';

/** The built program, and what Claude Code sends from the folders of a repository. */

const RECORDED = '../recordings/claude-code-2.1.329/multi-turn-resume/0001.json';

interface RecordedRequest {
  readonly headers: readonly (readonly [string, string])[];
  readonly body: {
    readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  };
}

function recorded(): RecordedRequest {
  const text = readFileSync(join(import.meta.dirname, RECORDED), 'utf8');
  return (JSON.parse(text) as { request: RecordedRequest }).request;
}

/** The recorded request from another folder, in another session, with another prompt. */
function requestFrom(folder: string, session: string, prompt: string) {
  const { headers, body } = recorded();
  const messages = body.messages.map((message) =>
    // The recording cut what the client ships: its environment comes first in this message.
    message.role === 'system'
      ? { ...message, content: `# Environment\n - Primary working directory: ${folder}\n` }
      : message,
  );
  const changed = JSON.stringify({ ...body, messages })
    .replaceAll('/home/user/project', folder)
    .replaceAll('00000000-0000-4000-8000-000000000001', session)
    .replaceAll('First typed question: where is the needle? [[plan=bash:ls -1|bash:pwd]]', prompt);
  expect(changed).toContain(prompt);
  const kept = headers.filter(([name]) =>
    /^(?:x-|anthropic-|user-agent|accept$|content-type)/i.test(name),
  );
  return {
    headers: {
      ...Object.fromEntries(kept),
      'X-Claude-Code-Session-Id': session,
      'x-api-key': LOCAL_TOKEN,
    },
    body: changed,
  };
}

function git(folder: string, ...words: readonly string[]): void {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b.c'];
  execFileSync('git', [...who, ...words], { cwd: folder, stdio: 'pipe' });
}

function newRepository(folder: string): string {
  mkdirSync(join(folder, 'packages', 'api'), { recursive: true });
  git(folder, 'init', '-q');
  git(folder, 'commit', '-q', '--allow-empty', '-m', folder);
  return folder;
}

const FACT =
  'The gateway of the walrus shop listens on port 6431 because 6430 belongs to the mailer.';
const QUESTION = 'Which port does the gateway of the walrus shop listen on?';
const IDS = [1, 2, 3, 4].map((at) => `11111111-0000-4000-8000-00000000000${at}`);

test('a worktree recalls what a subfolder of its repository was told, and a repository of that name does not', async () => {
  const provider = await startRecordingProvider();
  provider.reply = (request) => answerTo(request, { text: 'Noted, I will use that port.' });
  const upstream = { name: 'anthropic', apiStyle: 'anthropic_messages', baseUrl: provider.url };
  const config = validConfig();
  const home = homeWith({
    ...config,
    // A project of one fact is young: its share says nothing yet.
    proxy: { port: 8765, recallQuietPercent: 0 },
    upstreams: [{ ...upstream, providerKey: PROVIDER_KEY, allowPrivate: true }],
  });
  const data = join(home, 'data');
  const base = realpathSync(tempFolder());
  const shop = newRepository(join(base, 'one', 'shop'));
  const other = newRepository(join(base, 'two', 'shop'));
  git(shop, 'worktree', 'add', '-q', join(base, 'tree'));
  const proxy = await startProxyProcess(home, { SVC_DATA_HOME: data });
  const send = async (folder: string, session: number, prompt: string): Promise<string> => {
    const request = requestFrom(folder, IDS[session] ?? '', prompt);
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
