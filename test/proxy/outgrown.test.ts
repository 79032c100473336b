import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { GitProjects } from '../../src/adapters/projects/git-projects.ts';
import { answerTo } from '../support/dialect-wire.ts';
import { startRecordingProvider, startStory } from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Sessions of an agent in a real folder, over the whole proxy. */

const ANSWER =
  'Root cause: `poolPort()` in src/pool.ts returned 5432, but the walrus pooler listens on port 6543 because pgbouncer owns it.';
const QUESTION = 'which port does the walrus pooler listen on, and why does poolPort matter?';

async function stage() {
  const base = realpathSync(tempFolder());
  const root = join(base, 'shop');
  mkdirSync(join(root, 'src'), { recursive: true });
  const write = (path: string, text: string): void => writeFileSync(join(root, path), text);
  write('src/pool.ts', 'export const port = 6543;\n');
  const provider = await startRecordingProvider();
  provider.reply = (request) =>
    answerTo(request, { text: request.body.includes('tool_result') ? ANSWER : 'I do not know.' });
  const folder = join(base, 'data');
  const start = () =>
    startStory({
      provider,
      folder,
      projects: new GitProjects(folder, { recheckMs: 0 }),
      settings: { recallQuietPercent: 0, sessionBrief: false },
    });
  let story = await start();
  const prompt = async (session: string, messages: readonly unknown[]): Promise<string> => {
    const body = {
      model: 'm',
      max_tokens: 500,
      system: `You are an agent.\nPrimary working directory: ${root}\n`,
      tools: [{ name: 'Read', input_schema: { type: 'object' } }],
      metadata: { user_id: `user_x_account__session_${session}` },
      messages,
    };
    await story.send('anthropic_messages', body);
    await story.drained();
    return provider.seen.at(-1)?.body.toString() ?? '';
  };
  return {
    base,
    root,
    write,
    prompt,
    restart: async () => {
      await story.stop();
      story = await start();
    },
    /** A session that edits a file and concludes something about it. */
    learn: (args: object = { file_path: join(root, 'src/pool.ts') }, tool = 'Edit') =>
      prompt('one', [
        { role: 'user', content: 'the walrus pooler refuses connections, find out why' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: tool, input: args }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 't1', content: 'The file was updated.' }],
        },
      ]),
    /** Conversations that begin alike share what was placed in them, so each begins in its own way. */
    ask: (session = 'two') =>
      prompt(session, [{ role: 'user', content: `${QUESTION} (${session})` }]),
  };
}

const MARK = ' (files changed since):';

test('a line whose file changed since says so, also after a restart, and one whose file did not says nothing', async () => {
  const { learn, ask, write, restart } = await stage();
  await learn();
  const before = await ask();
  expect(before).toContain('walrus pooler listens on port 6543');
  expect(before).not.toContain(MARK);
  write('src/pool.ts', 'export const port = 7000;\n');
  await restart();
  const after = await ask('three');
  expect(after).toContain('walrus pooler listens on port 6543');
  expect(after).toContain(MARK);
  // No path, hash or commit is in the prompt.
  expect(after.slice(0, after.indexOf('</svc-memory>'))).not.toContain('shop/src');
});

test('the first placing decides: the same bytes come again whatever becomes of the file', async () => {
  const { learn, write, restart, prompt } = await stage();
  await learn();
  const first = await prompt('two', [{ role: 'user', content: QUESTION }]);
  const block = /<svc-memory[\s\S]*?<\/svc-memory>/.exec(first)?.[0];
  write('src/pool.ts', 'another');
  const history = [
    { role: 'user', content: QUESTION },
    { role: 'assistant', content: 'I do not know.' },
    { role: 'user', content: 'ok' },
  ];
  expect(await prompt('two', history)).toContain(block);
  await restart();
  expect(await prompt('two', history)).toContain(block);
  expect(block).not.toContain(MARK);
});

test('a file that vanished or became a folder or a pipe has changed, and the answer does not wait', async () => {
  const { learn, ask, root } = await stage();
  await learn();
  rmSync(join(root, 'src/pool.ts'));
  expect(await ask('a')).toContain(MARK);
  mkdirSync(join(root, 'src/pool.ts'));
  expect(await ask('b')).toContain(MARK);
  rmSync(join(root, 'src/pool.ts'), { recursive: true });
  execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', join(root, 'src/pool.ts')]);
  expect(await ask('c')).toContain(MARK);
});

test('of two statements on one file the newer wins', async () => {
  const { learn, ask, write, prompt, root } = await stage();
  await learn();
  write('src/pool.ts', 'export const port = 7000;\n');
  await prompt('newer', [
    { role: 'user', content: 'move the walrus pooler to another port' },
    {
      role: 'assistant',
      content: [
        {
          type: 'text',
          text: 'Decided: the walrus pooler in src/pool.ts listens on port 7000 now.',
        },
        {
          type: 'tool_use',
          id: 't1',
          name: 'Edit',
          input: { file_path: join(root, 'src/pool.ts') },
        },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'updated' }] },
  ]);
  const asked = await ask();
  expect(asked).toContain('port 7000');
  expect(asked).not.toContain('find out why');
});

test('names outside the folder, with control characters, or of no file leave nothing to compare', async () => {
  const names = ['/etc/passwd', '../outside.txt', 'a\u0000b', 'a\nb', 'no/such/file', 7];
  const { learn, ask, base, write } = await stage();
  writeFileSync(join(base, 'outside.txt'), 'x');
  write('a\nb', 'x');
  for (const name of names) {
    // oxlint-disable-next-line no-await-in-loop -- Session after session.
    await learn({ file_path: name });
  }
  writeFileSync(join(base, 'outside.txt'), 'y');
  write('a\nb', 'y');
  const asked = await ask();
  expect(asked).toContain('walrus pooler listens on port 6543');
  expect(asked).not.toContain(MARK);
});
