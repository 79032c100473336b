import fs, {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findTranscripts, readTranscript } from '../../src/adapters/foreign/transcript-files.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import type { TranscriptClient } from '../../src/core/memory/transcript-forms.ts';
import { runHere, tempFolder } from '../support/cli.ts';

/**
 * The sessions of each client as it keeps them: recorded from the real client, which was asked the same and ran one
 * command in between (Cline and Qwen Code ran none).
 */

const RECORDED = join(import.meta.dirname, '..', 'recordings', 'transcripts');
const ASKED = 'Please note: the staging database of this project listens on port 6431';
/** "Noted." alone is no memory. */
const ANSWERED = 'The staging database is in the runbook now.';
const DATABASE = '.local/share/opencode/opencode.db';

/** Where each recording lies in a home. */
const PLACES: readonly (readonly [TranscriptClient, string, string])[] = [
  ['copilot', 'copilot-1.0.102', '.copilot/session-state/0a73695c'],
  ['pi', 'pi-0.73.1', '.pi/agent/sessions/--home-user-project--'],
  ['qwen', 'qwen-0.24.4', '.qwen/projects/-home-user-project/chats'],
  ['gemini', 'gemini-0.61.0', '.gemini/tmp/project/chats'],
  ['continue', 'continue-1.5.47', '.continue/sessions'],
  ['cline', 'cline-3.0.65', '.cline/data/sessions/1795537913070_tj7ej'],
  ['opencode', 'opencode-1.18.33', dirname(DATABASE)],
];

function homeWith(recording: string, place: string): string {
  const home = tempFolder();
  cpSync(join(RECORDED, recording), join(home, place), { recursive: true });
  for (const name of readdirSync(join(home, place))) {
    const file = join(home, place, name);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/(\\?")Noted\./g, `$1${ANSWERED}`));
  }
  if (recording.startsWith('opencode')) fillDatabase(home);
  if (recording.startsWith('gemini')) {
    writeFileSync(join(home, dirname(place), '.project_root'), '/home/user/project');
  }
  return home;
}

/** The rows as opencode has them; other columns are not read. */
function fillDatabase(home: string, change: (row: Row) => Row = (row) => row): void {
  const folder = dirname(join(home, DATABASE));
  const lines = readFileSync(join(folder, 'rows.jsonl'), 'utf8').trimEnd().split('\n');
  const database = loadDriver().open(join(home, DATABASE));
  database.exec(`PRAGMA journal_mode = WAL;
    CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, revert TEXT, time_created INT, time_updated INT);
    CREATE TABLE message (id TEXT, session_id TEXT, time_created INT, data TEXT);
    CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, time_created INT, data TEXT);`);
  for (const { table, ...row } of lines.map((line) => change(JSON.parse(line) as Row))) {
    const names = Object.keys(row);
    const sql = `INSERT INTO ${table} (${names.join(',')}) VALUES (${names.map(() => '?').join(',')})`;
    database.prepare(sql).run(...Object.values(row));
  }
  database.close();
}

type Row = Readonly<Record<string, string | number>> & { readonly table: string };

async function read(client: TranscriptClient, home: string) {
  const files = findTranscripts(client, { home, environment: {} });
  return Promise.all(files.map((file) => readTranscript(client, file)));
}

describe.each(PLACES)('%s', (client, recording, place) => {
  test('the typed prompt and the visible answer become memories, in their folder', async () => {
    const [session, ...others] = await read(client, homeWith(recording, place));
    expect(others).toEqual([]);
    expect(session?.folder).toBe('/home/user/project');
    const records = session?.records ?? [];
    expect(records.map(({ role, text }) => `${role}: ${text.replaceAll(/\s+/g, ' ')}`)).toEqual([
      expect.stringMatching(new RegExp(`^user: "?${ASKED}`)),
      expect.stringMatching(new RegExp(`^assistant: (?:Step 1. )?${ANSWERED}$`)),
    ]);
    for (const record of records) {
      expect(record).toMatchObject({ client, isTimed: true });
      expect(record.conversation).not.toBe('');
      expect(record.text).not.toMatch(/I consider step|user_input|current_datetime|no output/);
    }
  });

  test('a file that is cut, empty or of another form gives nothing, and fails nothing', async () => {
    const home = homeWith(recording, place);
    const folder = join(home, place);
    // SQLite maps its shared memory: a program that cuts that file ends the reader.
    const names = readdirSync(folder).filter((name) => !name.endsWith('-shm'));
    for (const name of names) {
      const bytes = readFileSync(join(folder, name));
      writeFileSync(join(folder, name), bytes.subarray(0, bytes.length >> 1));
    }
    await read(client, home);
    for (const name of names) writeFileSync(join(folder, name), '[null, {}, 3]\n');
    const sessions = await read(client, home);
    expect(sessions.flatMap(({ records }) => records)).toEqual([]);
    expect(await read(client, tempFolder())).toEqual([]);
  });
});

test('a link among the sessions is not followed', async () => {
  const home = homeWith('pi-0.73.1', 'elsewhere');
  mkdirSync(join(home, '.pi/agent/sessions'), { recursive: true });
  symlinkSync(join(home, 'elsewhere'), join(home, '.pi/agent/sessions/linked'));
  expect(await read('pi', home)).toEqual([]);
});

test('a session that its client removes while the sessions are listed is left out', async () => {
  const home = homeWith('pi-0.73.1', '.pi/agent/sessions/kept');
  const gone = join(home, '.pi/agent/sessions/kept/a-gone.jsonl');
  writeFileSync(gone, '{}\n');
  const { lstatSync } = fs;
  const removing = (path: string): fs.Stats => {
    if (path === gone) unlinkSync(gone);
    return lstatSync(path);
  };
  const put = (lstat: unknown): void => {
    Object.assign(fs, { lstatSync: lstat });
    syncBuiltinESMExports();
  };
  put(removing);
  onTestFinished(() => put(lstatSync));
  expect((await read('pi', home)).map(({ records }) => records.length)).toEqual([2]);
});

test('of Gemini CLI, a resumed session goes on, what the person took back and sub-agents are left out', async () => {
  const home = homeWith('gemini-0.61.0', '.gemini/tmp/project/chats');
  const [file = ''] = readdirSync(join(home, '.gemini/tmp/project/chats'));
  const path = join(home, '.gemini/tmp/project/chats', file);
  const recorded = readFileSync(path, 'utf8').trimEnd().split('\n');
  const line = (type: string, id: string, text: string) =>
    JSON.stringify({ id, type, timestamp: '2026-11-24T20:00:00Z', content: [{ text }] });
  const texts = async (...lines: readonly string[]) => {
    writeFileSync(path, `${[...recorded, ...lines].join('\n')}\n`);
    const sessions = await read('gemini', home);
    return sessions.flatMap(({ records }) => records.map(({ text }) => text));
  };
  const more = [
    // A resumed session begins with its history, in which the client's own messages are.
    `{"$set":{"messages":[${recorded[2]},${line('user', 'x', 'The client says this.')}]}}`,
    line('user', 'u2', 'The replica listens on port 7777.'),
    line('gemini', 'a2', 'The replica is written down as well.'),
  ];
  const both = [expect.stringContaining(ASKED), ANSWERED];
  const later = ['The replica listens on port 7777.', 'The replica is written down as well.'];
  expect(await texts(...more)).toEqual([...both, ...later]);
  expect(await texts(...more, '{"$rewindTo":"u2"}')).toEqual(both);
  expect(await texts(...more, '{"$rewindTo":"unknown"}')).toEqual([]);
  expect(await texts(...more, '{"kind":"subagent"}')).toEqual([]);
});

test('of opencode, what the person took back, what it added itself and sub-agents are left out', async () => {
  const changed = async (change: (row: Row) => Row) => {
    const home = tempFolder();
    const folder = join(home, dirname(DATABASE));
    cpSync(join(RECORDED, 'opencode-1.18.33'), folder, { recursive: true });
    fillDatabase(home, change);
    return (await read('opencode', home)).flatMap(({ records }) => records);
  };
  const onSession = (more: Readonly<Record<string, string>>) => (row: Row) =>
    row.table === 'session' ? { ...row, ...more } : row;
  expect(await changed((row) => row)).not.toEqual([]);
  expect(await changed(onSession({ parent_id: 'ses_other' }))).toEqual([]);
  expect(await changed(onSession({ revert: '{"messageID":"msg_0"}' }))).toEqual([]);
  expect(
    await changed((row) =>
      row.table === 'part' && String(row['data']).includes(ASKED)
        ? {
            ...row,
            data: String(row['data']).replace('"type":"text"', '"type":"text","synthetic":true'),
          }
        : row,
    ),
  ).toEqual([]);
});

test(
  'svc memory import --from counts first, and writes with --yes',
  { timeout: 60_000 },
  async () => {
    const home = homeWith('opencode-1.18.33', dirname(DATABASE));
    const svc = (...args: readonly string[]) => runHere(['memory', ...args], { home });
    const counted = await svc('import', '--from', 'opencode');
    expect(counted).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Nothing was written'),
    });
    expect((await svc('list')).stdout).toBe('');
    expect((await svc('import', '--from', 'opencode', '--yes')).code).toBe(0);
    expect((await svc('list')).stdout).toContain('staging database');
    expect((await svc('import', '--from', 'cursor')).stderr).toContain('opencode, copilot');
  },
);
