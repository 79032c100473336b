import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';

/** The benches take data and labels of other people; see bench/README.md. */

const ROOT = join(import.meta.dirname, '..', '..');
const DAY_MS = 86_400_000;

// The benches are plain JavaScript.
const { InputError } = (await import(join(ROOT, 'bench/lib/input.mjs'))) as {
  InputError: new () => Error;
};
const { readOptions } = (await import(join(ROOT, 'bench/recall/options.mjs'))) as {
  readOptions: (args: readonly string[]) => unknown;
};
const { readConversations } = (await import(join(ROOT, 'bench/recall/locomo.mjs'))) as {
  readConversations: (given: { half: string; areRolesTold: boolean; file: string }) => unknown;
};
const { requestOf } = (await import(join(ROOT, 'bench/recall/coding-transcript.mjs'))) as {
  requestOf: (earlier: readonly object[], prompt: object) => { messages: unknown };
};
const { buildProduct } = (await import(join(ROOT, 'bench/lib/product.mjs'))) as {
  buildProduct: (
    entries: Record<string, string>,
    changes: readonly { file: string; from: string; to: string }[],
  ) => Promise<{
    modules: Record<string, Record<string, (...given: readonly unknown[]) => unknown>>;
    remove: () => void;
  }>;
};
const { readCoding } = (await import(join(ROOT, 'bench/recall/coding-labels.mjs'))) as {
  readCoding: (given: { data: string; labels?: readonly string[] }) => unknown;
};

function run(command: string, args: readonly string[]) {
  const { stdout, stderr, status } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' });
  return { stdout, stderr, status };
}

function benchRecall(...args: readonly string[]) {
  return run(process.execPath, [join('bench', 'recall', 'run.mjs'), ...args]);
}

function benchSessions(...args: readonly string[]) {
  return run('npm', ['run', '--silent', 'bench:sessions', '--', ...args]);
}

function fileOf(name: string, content: unknown): string {
  const file = join(tempFolder(), name);
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  writeFileSync(file, name.endsWith('.gz') ? gzipSync(text) : text);
  return file;
}

function exchange(id: string, session: string, given: { at: number; human: string; said: string }) {
  const { at, human, said } = given;
  const place = { repo: 'ferry', session, index: 0, branch: 'main', client: 'claude-code' };
  return { id, ...place, at, end: at + 60_000, human, items: [{ t: said }], edits: [], reads: [] };
}

const CODING = {
  set: 'ferries',
  prompts: [
    { id: 'f-2', pool: ['f-1'] },
    { id: 'f-3', pool: ['f-1'] },
    { id: 'f-4', pool: ['f-1'] },
  ],
  exchanges: [
    exchange('f-1', 's-1', {
      at: DAY_MS,
      human: 'Why does the timetable importer drop the night ferries?',
      said: 'The importer drops the night ferries because `parseTimetable` reads hours above 24 as errors. Use `wrapHours` instead.',
    }),
    exchange('f-2', 's-2', {
      at: 2 * DAY_MS,
      human: 'We had this before: the timetable importer drops night ferries again.',
      said: 'I look at the importer.',
    }),
    exchange('f-3', 's-3', { at: 3 * DAY_MS, human: 'commit', said: 'Committed.' }),
    exchange('f-4', 's-4', { at: 4 * DAY_MS, human: 'go on', said: 'Done.' }),
  ],
};
const LABELS = {
  'f-2': { need: 'yes', relevant: ['f-1'] },
  'f-3': { need: 'no' },
  'f-4': { need: 'yes', relevant: ['f-1'] },
};
/** Nobody wrote down the text that f-4 needs. */
const FACTS = { 'f-2': { all: [{ source: 'wrapHours', flags: '' }] } };

const CHAT = {
  id: 'c-1',
  a: 'Ann',
  turns: [
    ['D1:1', 'Ann', 'I bought a blue canoe at the harbour market in Oslo.'],
    ['D1:2', 'Bob', 'That sounds great, we could paddle to the lighthouse.'],
    ['D1:3', 'Ann', 'My sister keeps bees behind her bakery.'],
  ].map(([id, speaker, text]) => ({ id, sess: 1, date: '2023-05-08T13:56', speaker, text })),
  qa: [{ q: 'Where did Ann buy the canoe?', cat: 4, ev: ['D1:1'] }],
};
const PUBLISHED = {
  sample_id: CHAT.id,
  conversation: {
    speaker_a: 'Ann',
    speaker_b: 'Bob',
    session_1_date_time: '1:56 pm on 8 May, 2023',
    session_1: CHAT.turns.map(({ id, speaker, text }) => ({ dia_id: id, speaker, text })),
  },
  qa: CHAT.qa.map(({ q, cat, ev }) => ({ question: q, category: cat, evidence: ev })),
};

const SESSION = {
  id: 'one',
  model: 'gpt-5',
  items: [
    { role: 'user', kind: 'text', text: 'List the ferries.', tok: 5 },
    { role: 'assistant', kind: 'tool_use', tool: 'shell', tid: 't1', text: '{"cmd":"ls"}', tok: 9 },
    { role: 'user', kind: 'tool_result', tool: 'shell', tid: 't1', text: 'night.ts', tok: 4 },
    { role: 'assistant', kind: 'text', text: 'There is one.', tok: 4 },
  ],
  calls: [
    { ts: 1_700_000_000_000, a: 0, b: 1, usage: { in: 1000, cw: 0, cr: 0 } },
    { ts: 1_700_000_060_000, a: 0, b: 3, usage: { in: 20, cw: 0, cr: 1000 } },
  ],
};

test('bench:recall judges other coding sessions by their labels and facts', () => {
  const json = join(tempFolder(), 'out.json');
  const data = fileOf('sessions.json.gz', CODING);
  const judged = [
    '--labels',
    fileOf('labels.json', LABELS),
    '--facts',
    fileOf('facts.json', FACTS),
  ];
  const reading = join(tempFolder(), 'read.txt');
  // Without its own sessions the reading takes a minute of those beside the repository, where they are.
  const written = ['--json', json, '--read', reading, '--sessions', tempFolder()];
  const { stdout, status } = benchRecall(
    '--suite',
    'coding',
    '--data',
    data,
    ...judged,
    ...written,
  );
  expect(status).toBe(0);
  expect(stdout).toContain('Coding sessions "ferries": 3 prompts asked, 3 labelled, 2 in need');
  const { coding } = JSON.parse(readFileSync(json, 'utf8')) as {
    coding: { svc: Record<string, number> };
  };
  expect(coding.svc).toMatchObject({ needless: 0, byLines: 0.5, useful: 1, fact: 1 });
  const parts = readFileSync(reading, 'utf8').matchAll(/^== (\w+ [\w-]+)/gm);
  expect([...parts].map(([, part]) => part)).toEqual(expect.arrayContaining(['BLOCK f-2']));
});

test('a replayed session leaves behind what its client compacted', () => {
  const exchanges = CODING.exchanges.map((one, at) => ({ ...one, compacted: at === 2 }));
  const text = JSON.stringify(requestOf(exchanges.slice(0, 3), exchanges[3] ?? {}).messages);
  expect(text).toContain('This session is being continued from a previous conversation');
  // The answer that ran when the client compacted stands behind the summary.
  expect(text).not.toContain('We had this before');
  expect(text).toContain('I look at the importer.');
  expect(text).not.toContain('wrapHours');
  expect(text).toContain('"commit"');
});

test('bench:recall finds the session that edited the file of a later issue', () => {
  const folder = tempFolder();
  const [past, tasks] = ['SWEContextBench Lite Past Experience', 'SWEContextBench Lite'];
  mkdirSync(join(folder, past));
  mkdirSync(join(folder, tasks));
  const at = { timestamp: '2026-01-02T03:04:05.000Z', sessionId: 'one', cwd: '/srv/work' };
  const asked = 'Fix this bug.\nrepo: harbour/ferries\nThe timetable importer drops night ferries.';
  const edit = { type: 'tool_use', id: 't1', name: 'Edit', input: { file_path: './src/hours.py' } };
  const said = {
    type: 'text',
    text: 'The importer reads hours above 24 as errors: use wrap_hours.',
  };
  const lines = [
    { type: 'user', message: { role: 'user', content: asked }, ...at },
    { type: 'assistant', message: { role: 'assistant', content: [edit, said] }, ...at },
  ];
  writeFileSync(
    join(folder, past, 'one.jsonl'),
    lines.map((line) => JSON.stringify(line)).join('\n'),
  );
  const task = {
    repo: 'harbour/ferries',
    patch: 'diff --git a/src/hours.py b/src/hours.py\n',
    problem_statement: 'The timetable importer drops the ferries after midnight.',
  };
  writeFileSync(join(folder, tasks, 'two.json'), JSON.stringify(task));
  const { stdout, status } = benchRecall('--suite', 'swe', '--quiet', '0', '--data', folder);
  expect(stdout).toContain('SWE-ContextBench, 1 issues with a right earlier session');
  expect(stdout).toMatch(/\| svc +\| +100\.0 \| +100\.0 \| +100\.0 \| +100\.0 \|/);
  expect(status).toBe(0);
});

test('a build for a bench takes several changes of one file', async () => {
  const file = 'src/core/recall/running-share.ts';
  const { modules, remove } = await buildProduct({ share: file }, [
    { file, from: 'if (signal <= 0)', to: 'if (signal < 0)' },
    { file, from: 'const YOUNG = 20;', to: 'const YOUNG = 0;' },
  ]);
  try {
    expect(modules['share']?.['speaks']?.(0, [], 0)).toBe(true);
    expect(modules['share']?.['speaks']?.(1, [0], 0.5)).toBe(true);
  } finally {
    remove();
  }
});

test('bench:recall finds the evidence of other chats', () => {
  const data = fileOf('chats.json', [CHAT]);
  const { stdout, status } = benchRecall('--suite', 'evidence', '--data', data, '--half', 'all');
  expect(status).toBe(0);
  expect(stdout).toContain('chats.json, categories 1 to 4, 1 questions');
  expect(stdout).toMatch(/\| svc +\| +100\.0 \|/);
});

test('chats may be plain or gzipped, or as the authors of LoCoMo publish it', () => {
  const read = (name: string, chats: unknown): unknown =>
    readConversations({ half: 'all', areRolesTold: true, file: fileOf(name, chats) });
  const found = read('chats.json', [CHAT]);
  expect(found).toMatchObject([{ questions: [{ evidence: new Set(['D1:1']) }] }]);
  expect(read('chats.json.gz', [CHAT])).toEqual(found);
  expect(read('published.json', [PUBLISHED])).toEqual(found);
});

test('bench:sessions prices other sessions', () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'codex'));
  writeFileSync(join(folder, 'codex', 'one.json.gz'), gzipSync(JSON.stringify(SESSION)));
  const { stdout, status } = benchSessions('--data', folder, '--policy', 'svc');
  expect(stdout).toContain(`SKIPPED: no claude-code sessions in ${folder}`);
  expect(stdout).toContain('codex: 1 sessions');
  expect(status).toBe(0);
});

describe('wrong input ends a bench with one message and exit code 2', () => {
  const coding = (): string => fileOf('coding.json', CODING);
  const chats = (file: string, half = 'all') =>
    readConversations({ half, areRolesTold: true, file });
  const labelled = (label: unknown) =>
    readCoding({ data: coding(), labels: [fileOf('labels.json', label)] });
  test.each<[string, () => unknown, string]>([
    ['no such file', () => readOptions(['--data', '/nowhere', '--suite', 'coding']), 'not exist'],
    ['a folder', () => chats(tempFolder()), 'cannot be read (EISDIR)'],
    ['no JSON', () => readCoding({ data: fileOf('a.json', 'x') }), 'neither JSON'],
    ['no chats', () => chats(coding()), "LoCoMo's form"],
    [
      'no questions in that half',
      () => chats(fileOf('one.json', [CHAT]), 'test'),
      'no question with evidence in its test half',
    ],
    ['no exchanges', () => readCoding({ data: fileOf('b.json', {}) }), 'has no lists'],
    [
      'an exchange without its time',
      () => readCoding({ data: fileOf('c.json', { prompts: [], exchanges: [{ id: 'x' }] }) }),
      'exchange 0 lacks one of id, repo',
    ],
    ['a label for no prompt', () => labelled({ 'f-9': { need: 'no' } }), 'f-9 is no prompt'],
    ['a label without its verdict', () => labelled({ 'f-2': {} }), 'need is yes or no'],
    [
      'a label outside of the pool',
      () => labelled({ 'f-2': { need: 'yes', relevant: ['f-3'] } }),
      'f-3 is not in its pool',
    ],
    ['an unknown suite', () => readOptions(['--suite', 'codings']), 'Known: coding, swe, evidence'],
    ['an unknown half', () => readOptions(['--half', 'third']), 'Unknown half: third'],
    ['data for all suites', () => readOptions(['--data', coding()]), '--data is for one suite'],
    ['an unknown option', () => readOptions(['--suit', 'coding']), 'npm run bench:recall'],
  ])('%s', (_, read, message) => {
    expect(read).toThrow(InputError);
    expect(read).toThrow(message);
  });

  test('bench:recall', () => {
    const { stderr, status } = benchRecall('--suite', 'evidence', '--data', coding());
    expect(stderr).toMatch(/^.*coding\.json is no list of conversations in LoCoMo's form.*\n$/);
    expect(status).toBe(2);
  });

  test('bench:sessions, a folder without sessions and a file that is none', () => {
    const folder = tempFolder();
    const missing = benchSessions('--data', folder);
    expect(missing.stderr).toContain('has neither a folder "claude-code" nor "codex"');
    expect(missing.status).toBe(2);
    mkdirSync(join(folder, 'codex'));
    writeFileSync(join(folder, 'codex', 'one.json.gz'), 'x');
    const broken = benchSessions('--data', folder);
    expect(broken.stderr).toContain(join(folder, 'codex', 'one.json.gz'));
    expect(broken.stderr).not.toMatch(/^ +at /m);
    expect(broken.status).toBe(2);
  });
});
