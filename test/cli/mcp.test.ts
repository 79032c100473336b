import { mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect, onTestFinished, test, vi } from 'vitest';
import { CodeFiles } from '../../src/adapters/projects/code-files.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { estimateTextTokens } from '../../src/core/bytes/tokens.ts';
import { linesOf } from '../../src/cli/memory/excerpt.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { folderSpace } from '../../src/core/request/space.ts';
import { BIN, runCli } from '../support/cli.ts';
import { outputRecordOf, recordOf, sharedStarts } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

// Processes with a database each, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

interface Texts {
  readonly content: { readonly text: string }[];
  readonly isError?: boolean;
}

/** `svc mcp` as a client starts it, in a project, beside a store that is open already. */
async function openMcp(...flags: readonly string[]) {
  const home = realpathSync(tempFolder());
  const data = join(home, 'data');
  const project = join(home, 'project');
  mkdirSync(project);
  const store = openEmbeddedStore({ folder: data, report: () => undefined });
  onTestFinished(() => store.close());
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, SVC_DATA_HOME: data };
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, 'mcp', ...flags],
    env,
    cwd: project,
    stderr: 'pipe',
  });
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(transport);
  onTestFinished(() => client.close());
  const ask = async (name: string, args: Record<string, unknown>): Promise<Texts> =>
    (await client.callTool({ name, arguments: args })) as Texts;
  return { home, project, data, env, store, client, transport, ask };
}

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

const TRICKY = 'one\r\n\u2028two \u001b[31mred\u001b[0m\n\n\0𝄞 {"a":1.0}\ttail without end';

test('a model is offered two tools that read, and is told when to use them', async () => {
  const { client } = await openMcp();
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['memory_get', 'memory_search']);
  for (const { annotations } of tools) expect(annotations?.readOnlyHint).toBe(true);
  expect(client.getInstructions()).toContain('[svc left');
});

test('memory_get and svc memory get give the exact stored bytes, whole and by lines', async () => {
  const { store, ask, env, home, project } = await openMcp();
  const record = outputRecordOf(TRICKY, { space: folderSpace(project) });
  await store.memory.capture([record], patience());
  const ref = referenceOf(record.digest);
  const cases = [
    [undefined, TRICKY],
    ['1-1', 'one\r\n'],
    ['2-3', linesOf(TRICKY, { from: 2, to: 3 })],
    ['4-99', '\0𝄞 {"a":1.0}\ttail without end'],
  ] as const;
  for (const [lines, text] of cases) {
    const asked = lines === undefined ? { ref } : { ref, lines };
    expect((await ask('memory_get', asked)).content).toEqual([{ type: 'text', text }]);
    const words = lines === undefined ? [] : ['--lines', lines];
    const printed = await runCli(['memory', 'get', ref, ...words], { home, env });
    expect([printed.stdout, printed.stderr, printed.code]).toEqual([text, '', 0]);
  }
});

test('a memory whose files have changed since says so, beside its text and never in it', async () => {
  const { store, ask, env, home, project } = await openMcp();
  const space = folderSpace(project);
  const text = 'The walrus pooler listens on port 6543 because pgbouncer owns the other one.';
  const record = recordOf(text, { space });
  await store.memory.capture([record], patience());
  const ref = referenceOf(record.digest);
  writeFileSync(join(project, 'pool.ts'), '6543');
  const look = await new CodeFiles().look({ folder: project, root: project }, ['pool.ts']);
  const note = { space, digests: [record.digest], root: project, commit: '' };
  await store.provenance.keep([{ ...note, files: look?.files ?? [] }]);
  const read = async () => (await ask('memory_get', { ref })).content.map((one) => one.text);
  const find = async () => (await ask('memory_search', { query: 'pgbouncer' })).content[0]?.text;
  expect(await read()).toEqual([text]);
  expect(await find()).not.toContain('changed since');
  writeFileSync(join(project, 'pool.ts'), '6432');
  const remark = 'files changed since this was said: pool.ts.';
  expect(await read()).toEqual([text, expect.stringContaining(remark)]);
  expect(await find()).toContain(remark);
  const printed = await runCli(['memory', 'get', ref], { home, env });
  expect([printed.stdout, printed.code]).toEqual([text, 0]);
  expect(printed.stderr).toContain(remark);
});

test('a long text comes in parts of at most 1,500 tokens that fit together, or all at once', async () => {
  const { store, ask, env, home, project } = await openMcp();
  const text = Array.from({ length: 400 }, (_, at) => `line ${at} of a long log\n`).join('');
  const record = outputRecordOf(text, { space: folderSpace(project) });
  await store.memory.capture([record], patience());
  const ref = referenceOf(record.digest);
  let whole = '';
  let lines: string | undefined = '1-400';
  while (lines !== undefined) {
    const { content }: Texts = await ask('memory_get', { ref, lines });
    const [part, rest] = content;
    expect(estimateTextTokens(part?.text ?? '')).toBeLessThanOrEqual(1_500);
    whole += part?.text ?? '';
    lines = /Go on with lines "(\d+-\d+)"/.exec(rest?.text ?? '')?.[1];
  }
  expect(whole).toBe(text);
  const found = await ask('memory_get', { ref, grep: 'line 7\\d ', context: 0 });
  expect(found.content[0]?.text).toMatch(/^71:line 70 of a long log\n(.*\n){8}80:line 79/);
  expect((await ask('memory_get', { ref, all: true })).content).toEqual([{ type: 'text', text }]);
  const get = (...words: string[]) => runCli(['memory', 'get', ref, ...words], { home, env });
  const short = await get();
  expect(text.startsWith(short.stdout)).toBe(true);
  expect(short.stderr).toMatch(
    /^\[svc: lines 1-\d+ of 400 lines, .*--lines \d+-400; --grep PATTERN/,
  );
  expect(await get('--all')).toEqual({ stdout: text, stderr: '', code: 0 });
  const around = await get('--around', 'line 300');
  expect(around.stdout).toContain('line 300 of a long log\n');
  expect((await get('--grep', 'zebra')).code).toBe(1);
  expect((await get('--lines', 'x')).code).toBe(2);
});

test('of a text that is too long for one answer the start comes, with the way to the rest', async () => {
  const { store, ask, project } = await openMcp();
  const oneLine = outputRecordOf('x'.repeat(70_000), { space: folderSpace(project) });
  await store.memory.capture([oneLine], patience());
  const cut = await ask('memory_get', { ref: referenceOf(oneLine.digest), all: true });
  expect(cut.content[0]?.text).toBe('x'.repeat(60_000));
  expect(cut.content[1]?.text).toContain('svc memory get');
});

test('R25: memory_search looks in this project and in what belongs to all, nowhere else unasked', async () => {
  const { store, ask, project } = await openMcp();
  const said = (text: string, space: string) => recordOf(text, { space });
  await store.memory.capture(
    [
      said('The staging host is walrus-seven.', folderSpace(project)),
      said('A staging host is never rebooted on a Friday.', 'global'),
      said('The staging host is otter-nine.', 'project/another'),
    ],
    patience(),
  );
  const found = await ask('memory_search', { query: 'staging host' });
  const text = found.content.map((it) => it.text).join('\n');
  expect(text).toContain('walrus-seven');
  expect(text).toContain('Friday');
  expect(text).not.toContain('otter-nine');
  expect((await ask('memory_search', { query: 'zebra' })).content[0]?.text).toContain('Nothing');
});

test('R42: a model reads its own project and global; more only where the person allowed it', async () => {
  const said = (text: string, space: string) => recordOf(text, { space });
  const secret = said('The staging host is otter-nine.', 'project/another');
  const output = outputRecordOf('a log of another project', { space: 'project/another' });
  const runs = [
    { flags: [], isAllowed: false },
    { flags: ['--space', 'project/third'], isAllowed: false },
    { flags: ['--space', 'project/third', '--space', 'project/another'], isAllowed: true },
    { flags: ['--all-spaces'], isAllowed: true },
  ];
  for (const { flags, isAllowed } of runs) {
    // oxlint-disable-next-line no-await-in-loop -- One client after the other.
    const { store, ask, project } = await openMcp(...flags);
    // oxlint-disable-next-line no-await-in-loop
    await store.memory.capture([secret, said('Shared words.', 'project/another')], patience());
    // oxlint-disable-next-line no-await-in-loop
    await store.memory.capture([said('Shared words.', folderSpace(project))], patience());
    // oxlint-disable-next-line no-await-in-loop
    await store.memory.capture([output], patience());
    const asked = [
      ['memory_search', { query: 'staging host', space: 'project/another' }],
      ['memory_get', { ref: referenceOf(secret.digest) }],
      ['memory_get', { ref: referenceOf(output.digest) }],
      ['memory_get', { ref: referenceOf(secret.digest).slice(0, 10) }],
      ['memory_get', { ref: referenceOf(output.digest).slice(0, 6) }],
    ] as const;
    for (const [name, args] of asked) {
      // oxlint-disable-next-line no-await-in-loop
      const { isError, content } = await ask(name, args);
      expect([flags, name, isError === true]).toEqual([flags, name, !isAllowed]);
      const text = content.map((it) => it.text).join('\n');
      expect(/otter-nine|a log of/.test(text)).toBe(isAllowed);
      if (!isAllowed) expect(text).toContain('svc mcp --space');
    }
    // oxlint-disable-next-line no-await-in-loop
    const everywhere = await ask('memory_search', { query: 'staging host' });
    expect(
      everywhere.content
        .map((it) => it.text)
        .join('\n')
        .match(/otter-nine/g) ?? [],
    ).toHaveLength(isAllowed ? 1 : 0);
    // What two projects hold is read in the own one.
    const shared = referenceOf(said('Shared words.', 'global').digest);
    // oxlint-disable-next-line no-await-in-loop
    expect((await ask('memory_get', { ref: shared })).content[0]?.text).toBe('Shared words.');
  }
});

test('a reference that begins several memories is answered with those that the model may read', async () => {
  const { store, ask, project } = await openMcp();
  const [one, other] = sharedStarts(4);
  const own = folderSpace(project);
  const ref = referenceOf(one.digest).slice(0, 6);
  await store.memory.capture([{ ...one, space: own }], patience());
  await store.memory.capture([{ ...other, space: 'project/another' }], patience());
  expect((await ask('memory_get', { ref })).content[0]?.text).toBe(one.text);
  await store.memory.capture([{ ...other, space: own }], patience());
  const { isError, content } = await ask('memory_get', { ref });
  expect(isError).toBe(true);
  for (const { digest } of [one, other]) expect(content[0]?.text).toContain(referenceOf(digest));
});

test('what is asked wrongly is answered with what to do, and the next question works', async () => {
  const { ask } = await openMcp();
  const wrong = [
    ['memory_get', { ref: 'm_aaaaaaaaaaaaaaaa' }],
    ['memory_get', { ref: 'm_aaaaaaaaaaaaaaaa', lines: '3-2' }],
    ['memory_get', { ref: '../../etc/passwd' }],
    ['memory_search', { query: '' }],
    ['memory_search', { query: 'x', limit: 1_000_000 }],
    ['memory_search', { query: 'x', space: 'No Space' }],
  ] as const;
  for (const [name, args] of wrong) {
    expect([args, await ask(name, args)]).toMatchObject([args, { isError: true }]);
  }
});

test('it makes no store before somebody asks, and ends with its client', async () => {
  const home = tempFolder();
  const data = join(home, 'data');
  const result = await runCli(['mcp'], { home, env: { SVC_DATA_HOME: data }, input: '' });
  expect(result).toEqual({ stdout: '', stderr: '', code: 0 });
  expect(readdirSync(home)).toEqual([]);
});

test('a memory that is away is said to the model, not hidden from it', async () => {
  const { client, data, env } = await openMcp();
  await client.close();
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, 'mcp'],
    env: { ...env, SVC_DATA_HOME: join(data, 'memory.db', 'no-folder') },
    stderr: 'pipe',
  });
  const other = new Client({ name: 'test', version: '1.0.0' });
  await other.connect(transport);
  onTestFinished(() => other.close());
  const answer = await other.callTool({ name: 'memory_search', arguments: { query: 'x' } });
  expect(answer).toMatchObject({ isError: true });
  expect(JSON.stringify(answer)).toContain('svc doctor');
});
