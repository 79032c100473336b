import { FoundEntries } from '../../src/core/ledger/entries.ts';
import { expect, test } from 'vitest';
import { CliError, reportError } from '../../src/cli/cli-error.ts';
import { forgetMemories, getMemory, listMemories } from '../../src/cli/memory/memory.ts';
import { listRequests } from '../../src/cli/requests/requests.ts';
import type { CliStore } from '../../src/cli/compose-store.ts';
import { stripVTControlCharacters } from 'node:util';
import { oneLine, printable, Terminal } from '../../src/cli/terminal.ts';
import { screen as screenOf } from '../support/screen.ts';
import type { ForgetFilter, ListFilter, SpokenRecord } from '../../src/ports/memory.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { MemoryError } from '../../src/core/errors.ts';
import type { CommandContext, Confirm } from '../../src/cli/context.ts';

const record: SpokenRecord = {
  ref: 'm_abcdefgh',
  digest: 'd',
  space: '/home/a',
  role: 'user',
  text: 'one\ntwo \u001b[31mred\u001b[0m \u202eevil\nthree\n',
  conversation: 'c',
  client: 'claude-code',
  at: Date.UTC(2026, 10, 20, 12, 0, 0),
  fingerprint: 'f',
  exchange: 0,
};

const row: RequestRow = {
  id: 'req_1',
  at: record.at,
  client: 'codex',
  kind: 'main',
  dialect: 'openai_responses',
  model: 'model\u001b[2J',
  space: 'default',
  conversation: 'c',
  status: 200,
  end: 'complete',
  memoryMode: 'read-write',
  memoryState: 'recalled',
  compressionMode: 'deterministic',
  continuityState: 'not_needed',
  originalInputTokens: 100,
  forwardedInputTokens: 120,
  recalledTokens: 20,
  elidedItems: 0,
  elidedTokens: 0,
  ms: {},
};

/** A store of one record and one row that notes what it is asked. */
function storeOf(records: readonly SpokenRecord[] = [record]) {
  const asked: unknown[] = [];
  let closed = 0;
  const store: CliStore = {
    memory: {
      supports: { kind: 'fake', read: true, write: true },
      recall: async () => ({ passages: [] }),
      capture: async () => [],
      retrieve: async (key) => {
        asked.push(key);
        return records.find(({ ref }) => 'ref' in key && key.ref === ref);
      },
      list: async (filter: ListFilter) => {
        asked.push(filter);
        return records;
      },
      references: async (start) =>
        records.map(({ ref }) => ref).filter((ref) => ref.startsWith(start)),
      forget: async (filter: ForgetFilter) => {
        asked.push(filter);
        return records.length;
      },
      hold: async () => [],
      close: async () => undefined,
    },
    ledger: {
      isShared: false,
      find: async () => new FoundEntries([]),
      generation: () => 0,
      record: async () => undefined,
      commit: async () => true,
    },
    requests: {
      add: () => undefined,
      addQuota: () => undefined,
      quota: async () => [],
      trial: async () => ({ conversations: { with: 0, without: 0 }, results: [] }),
      sum: async () => [],
      list: async () => [row],
      conversation: async () => [],
      find: async () => [],
    },
    readOutput: () => undefined,
    close: async () => {
      closed += 1;
    },
  };
  return { asked, open: async () => store, closed: () => closed, store };
}

function screen(isTTY = false) {
  const out: string[] = [];
  const err: string[] = [];
  const into = (lines: string[]) => ({ isTTY, write: (text: string) => lines.push(text) > 0 });
  const terminal = new Terminal({ stdout: into(out), stderr: into(err), environment: {} });
  const environment = { SVC_DATA_HOME: '/nowhere' };
  return {
    context: { terminal, environment },
    out: () => out.join(''),
    err: () => err.join(''),
  };
}

const list = ({ words, options }: { words?: string; options: object }, context: CommandContext) =>
  listMemories({ args: words === undefined ? [] : [words], options, context });

const get = ({ ref, options }: { ref: string; options: object }, context: CommandContext) =>
  getMemory({ args: [ref], options, context });

const forget = (
  { refs, options, confirm }: { refs: string[]; options: object; confirm?: Confirm },
  context: CommandContext,
) => forgetMemories({ args: refs, options, context: { ...context, asker: () => confirm } });

const requestsOf = ({ id, ...options }: { id?: string; json?: true }, context: CommandContext) =>
  listRequests({ args: id === undefined ? [] : [id], options, context });

test('memories are listed one a line, harmless for a screen', async () => {
  const { context, out } = screen();
  const { open, asked, closed } = storeOf();
  await list({ options: { space: '/home/a', limit: '5' } }, { ...context, openStore: open });
  expect(asked).toEqual([{ limit: 5, space: '/home/a' }]);
  expect(out()).toMatch(
    /^m_abcdefgh {2}2026-11-2\d \d\d:00:00 {2}\/home\/a user claude-code {2}one two \ufffd\[31mred/,
  );
  expect(out().split('\n')).toHaveLength(2);
  expect(out()).not.toContain('\u202e');
  expect(closed()).toBe(1);
});

test('searching asks for the words, and JSON is the records themselves', async () => {
  const { context, out } = screen();
  const { open, asked } = storeOf();
  await list({ words: 'red things', options: { json: true } }, { ...context, openStore: open });
  expect(asked).toEqual([{ limit: 20, words: 'red things' }]);
  expect(JSON.parse(out())).toEqual([record]);
});

test('get gives a pipe the exact text, a screen a harmless one, and lines that add up', async () => {
  const pipe = screen();
  const { open } = storeOf();
  await get({ ref: record.ref, options: {} }, { ...pipe.context, openStore: open });
  expect(pipe.out()).toBe(record.text);
  const watched = screen(true);
  await get({ ref: record.ref, options: {} }, { ...watched.context, openStore: open });
  expect(watched.out()).not.toContain('\u001b');
  const parts = screen();
  await get({ ref: record.ref, options: { lines: '1-2' } }, { ...parts.context, openStore: open });
  await get({ ref: record.ref, options: { lines: '3-9' } }, { ...parts.context, openStore: open });
  expect(parts.out()).toBe(record.text);
});

test('a reference that nobody has is an error with what to do', async () => {
  const { context } = screen();
  const { open, closed } = storeOf();
  await expect(get({ ref: 'm_no', options: {} }, { ...context, openStore: open })).rejects.toThrow(
    CliError,
  );
  expect(closed()).toBe(1);
});

const FORGET = { refs: [] };

test('forgetting asks on a terminal, and elsewhere wants --yes', async () => {
  const { context, err } = screen();
  const { open, asked } = storeOf();
  const questions: string[] = [];
  const answering = (isYes: boolean) => (message: string) => {
    questions.push(message);
    return Promise.resolve(isYes);
  };
  for (const options of [{}, { space: 's' }, { search: 'w' }]) {
    const refs = Object.keys(options).length === 0 ? ['m_a'] : [];
    const refused = forget({ ...FORGET, refs, options }, { ...context, openStore: open });
    await expect(refused).rejects.toMatchObject({ exitCode: 2 });
    const request = { ...FORGET, refs, options, confirm: answering(false) };
    expect(await forget(request, { ...context, openStore: open })).toBe(130);
  }
  expect(asked).toEqual([{ refs: ['m_a'], limit: 1000 }]);
  expect(questions).toHaveLength(3);
  expect(err()).toContain('Nothing was forgotten.');
  const sure = { ...FORGET, refs: ['m_a'], options: {}, confirm: answering(true) };
  expect(await forget(sure, { ...context, openStore: open })).toBe(0);
  for (const options of [
    { space: 's', yes: true },
    { search: 'w', yes: true },
    { search: 'w', space: 's', yes: true },
  ]) {
    await forget({ ...FORGET, options }, { ...context, openStore: open });
  }
  expect(asked.slice(3)).toEqual([{ space: 's' }, { words: 'w' }, { space: 's', words: 'w' }]);
  expect(err()).toContain('Forgotten: 1.');
  const mixed = { ...FORGET, refs: ['m_a'], options: { search: 'w', yes: true } };
  await expect(forget(mixed, { ...context, openStore: open })).rejects.toMatchObject({
    exitCode: 2,
  });
});

test('forgetting nothing is a failure', async () => {
  const { context } = screen();
  const { open } = storeOf([]);
  const request = { ...FORGET, refs: ['m_a'], options: { yes: true } };
  await expect(forget(request, { ...context, openStore: open })).rejects.toThrow(
    'No memory matches.',
  );
});

test('a memory that cannot answer is one message with its reason, and the store is closed', async () => {
  const { context } = screen();
  const { store, closed } = storeOf();
  const memory = {
    ...store.memory,
    list: async () => {
      throw new MemoryError('unavailable', "The memory's file is locked.");
    },
  };
  const listing = list(
    { options: {} },
    { ...context, openStore: async () => ({ ...store, memory }) },
  );
  await expect(listing).rejects.toThrow(
    "The memory cannot answer (unavailable). The memory's file is locked.",
  );
  expect(closed()).toBe(1);
});

test('requests are listed one a line, or as JSON', async () => {
  const { context, out } = screen();
  const { open } = storeOf();
  await requestsOf({}, { ...context, openStore: open });
  const [head = '', line = ''] = out().split('\n');
  expect(head).toMatch(
    /^time +request +status +client +memory +shortening +in +sent +recalled +end/,
  );
  expect(line).toMatch(
    /req_1 +200 +codex +recalled +not_needed +100 +120 +20 +complete +model\ufffd\[2J$/,
  );
  // A check of svc is no unknown client.
  const probe = screen();
  const { store } = storeOf();
  const checked = { ...row, client: 'unknown', space: 'svc-doctor' };
  const requests = { ...store.requests, list: async () => [checked] };
  await requestsOf({}, { ...probe.context, openStore: async () => ({ ...store, requests }) });
  expect(probe.out()).toMatch(/req_1 +200 +svc doctor +recalled/);
  const json = screen();
  await requestsOf({ json: true }, { ...json.context, openStore: open });
  expect(JSON.parse(json.out())).toEqual([row]);
});

test('R29: an error that nobody planned is told by its kind and the system’s code alone', () => {
  const { context, err } = screen();
  expect(reportError(new TypeError('CANARY'), context.terminal)).toBe(1);
  expect(reportError('CANARY', context.terminal)).toBe(1);
  const full = Object.assign(new Error('CANARY'), { code: 'EIO' });
  expect(reportError(full, context.terminal)).toBe(1);
  expect(err()).toContain('(TypeError)');
  expect(err()).toContain('(Error EIO)');
  expect(err()).not.toContain('CANARY');
});

test('a process that may open no more files says how to let it', () => {
  const { context, err } = screen();
  const none = Object.assign(new Error('CANARY'), { code: 'EMFILE' });
  expect(reportError(none, context.terminal)).toBe(1);
  expect(err()).toBe(
    'svc: The system lets svc open no more files (EMFILE).\n  Raise the limit, then run it again: ulimit -n 1024\n',
  );
});

test('nothing that a screen acts on is printed, and joined letters stay joined', () => {
  expect(printable('a\u0007b\u009bc\u202ed\u2066e\ufefff\r')).toBe(
    'a\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\ufffd',
  );
  expect(printable('tab\there\n👩\u200d💻')).toBe('tab\there\n👩\u200d💻');
  expect(oneLine(' a\n\n b ', 10)).toBe('a b');
  expect(oneLine('x'.repeat(1_000_000), 5)).toBe('xxxx…');
});

test('a narrow screen shows fewer columns of the requests, and each of them whole', async () => {
  const { open } = storeOf();
  for (const columns of [40, 60, 80, 120]) {
    const { terminal, stdout } = screenOf(columns);
    await requestsOf({}, { terminal, environment: { SVC_DATA_HOME: '/nowhere' }, openStore: open });
    const [head = '', line = ''] = stripVTControlCharacters(stdout()).split('\n');
    expect(Math.max(head.length, line.length)).toBeLessThanOrEqual(columns);
    expect(['status', 'client', 'memory', 'shortening', 'end', 'model', 'request']).toContain(
      head
        .trim()
        .split(/ +/)
        .at(-1)
        ?.replace(/^(?:in|sent|recalled)$/, 'end'),
    );
  }
});

test('the beginning of an id is enough, and one that is not is said so', async () => {
  const { store } = storeOf();
  const { context, out } = screen();
  const requests = { ...store.requests, list: async () => [row, { ...row, id: 'req_12' }] };
  const several = requestsOf(
    { id: 'req_1' },
    { ...context, openStore: async () => ({ ...store, requests }) },
  );
  await expect(several).rejects.toThrow('More than one id begins with this.');
  await requestsOf({ id: 'req_' }, { ...context, openStore: async () => store });
  expect(out()).toContain('Request       req_1');
});

test('one request in full quotes what was left out', async () => {
  const { context, out } = screen();
  const { store } = storeOf();
  const full = {
    ...row,
    elidedRefs: [record.ref, 'm_gone'],
  };
  const requests = { ...store.requests, list: async () => [full] };
  await requestsOf(
    { id: 'req_1' },
    { ...context, openStore: async () => ({ ...store, requests }) },
  );
  expect(out()).toContain('m_gone  (forgotten since, or not available)');
  expect(out()).toContain('Left out:\n  m_abcdefgh  one two');
  expect(out()).not.toContain('\u001b');
});

test('on a screen memories are grouped by project, each in a line that fits', async () => {
  const { terminal, stdout } = screenOf(60);
  const other = { ...record, ref: 'm_bcdefghi', space: 'project/other', text: 'x '.repeat(90) };
  const { open } = storeOf([record, other, { ...record, ref: 'm_cdefghij' }]);
  await list({ options: {} }, { terminal, environment: { SVC_DATA_HOME: '/no' }, openStore: open });
  const lines = stripVTControlCharacters(stdout()).split('\n');
  expect(lines.map((line) => line.slice(0, 13))).toEqual([
    '/home/a',
    '  m_abcdefgh ',
    '  m_cdefghij ',
    '',
    'project/other',
    '  m_bcdefghi ',
    '',
  ]);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
});
