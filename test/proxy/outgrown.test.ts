import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { GitProjects } from '../../src/adapters/projects/git-projects.ts';
import { answerTo } from '../support/dialect-wire.ts';
import { startRecordingProvider, startStory } from '../support/story.ts';
import { FILES_MAX } from '../../src/ports/provenance.ts';
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
  let answer = ANSWER;
  provider.reply = (request) =>
    answerTo(request, { text: request.body.includes('tool_result') ? answer : 'I do not know.' });
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
      system: `You are Claude Code, Anthropic's official CLI for Claude.\nWorking directory: ${root}\n`,
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
    setAnswer: (text: string) => {
      answer = text;
    },
    /** As another process sees it. */
    kept: async () => {
      const store = openEmbeddedStore({ folder, report: () => undefined });
      try {
        return {
          provenance: await store.provenance.list({ limit: 100 }),
          records: await store.memory.list({ limit: 100 }, AbortSignal.timeout(30_000)),
        };
      } finally {
        await store.close();
      }
    },
    write,
    prompt,
    restart: async () => {
      await story.stop();
      story = await start();
    },
    /** A session that edits a file and concludes something about it. */
    learn: (
      args: object = { file_path: join(root, 'src/pool.ts') },
      { tool = 'Edit', order = 'the walrus pooler refuses connections, find out why' } = {},
    ) =>
      prompt('one', [
        { role: 'user', content: order },
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
  const { learn, ask, write, prompt, root, setAnswer } = await stage();
  await learn();
  write('src/pool.ts', 'export const port = 7000;\n');
  setAnswer('Done.');
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

test('a patch of 10,000 files is bounded, and its first files are compared', async () => {
  const { learn, ask, write, kept } = await stage();
  for (let at = 0; at < 50; at += 1) write(`src/${at}.ts`, 'x');
  const lines = Array.from({ length: 10_000 }, (_, at) => `*** Update File: src/${at}.ts`);
  const input = ['*** Begin Patch', ...lines, '*** End Patch'].join('\n');
  await learn({ input }, { tool: 'apply_patch' });
  const { provenance } = await kept();
  expect(provenance.map(({ files }) => files.length)).toEqual([FILES_MAX]);
  write('src/0.ts', 'other');
  expect(await ask()).toContain(MARK);
});

test('a file of 2 GB is compared without being read whole', async () => {
  const { learn, ask, root, kept } = await stage();
  truncateSync(join(root, 'src/pool.ts'), 2 ** 31);
  await learn();
  expect((await kept()).provenance[0]?.files[0]).toMatchObject({ size: 2 ** 31 });
  expect(await ask('a')).not.toContain(MARK);
  truncateSync(join(root, 'src/pool.ts'), 2 ** 31 + 4096);
  expect(await ask('b')).toContain(MARK);
});

test('an answer of one line of 1 MB is kept in part, with its files', async () => {
  const { learn, ask, write, setAnswer, kept } = await stage();
  setAnswer(`${ANSWER} ${'walrus pooler '.repeat(75_000)}`);
  await learn();
  const { records, provenance } = await kept();
  expect(records.map(({ role }) => role).toSorted()).toEqual(['assistant', 'user']);
  expect(provenance).toHaveLength(1);
  write('src/pool.ts', 'other');
  const asked = await ask();
  expect(asked).toContain(MARK);
  expect(asked.length).toBeLessThan(5_000);
});

test('an exchange without a conclusion keeps nothing beside nothing, and one with only an order its answer', async () => {
  const { learn, setAnswer, kept } = await stage();
  setAnswer('Done.');
  await learn(undefined, { order: 'go on' });
  expect(await kept()).toEqual({ provenance: [], records: [] });
  setAnswer(ANSWER);
  await learn(undefined, { order: 'commit' });
  const { records, provenance } = await kept();
  expect(records.map(({ text }) => text)).toEqual([ANSWER]);
  expect(provenance.map(({ record }) => record.text)).toEqual([ANSWER]);
});

test('a repository without a commit and a detached head give what they have', async () => {
  const { learn, root, kept, restart } = await stage();
  const git = (...words: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...words], {
      cwd: root,
      encoding: 'utf8',
    }).trim();
  git('init', '-q', '-b', 'begin');
  await learn(undefined, { order: 'why does the walrus pooler refuse the first time?' });
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  git('checkout', '-q', '--detach');
  const commit = git('rev-parse', 'HEAD');
  await restart();
  await learn(undefined, { order: 'why does the walrus pooler refuse the second time?' });
  const { records, provenance } = await kept();
  const branches = records
    .filter(({ role }) => role === 'user')
    .map(({ branch }) => branch)
    .toReversed();
  expect(branches).toEqual(['begin', undefined]);
  expect(provenance.map((one) => one.commit)).toEqual([commit]);
});
