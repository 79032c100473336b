import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { runCli } from '../support/cli.ts';
import { HookStage } from '../support/hook-stage.ts';
import { freePort } from '../support/free-port.ts';
import { validConfig } from '../support/config.ts';
import { keepThreads } from '../support/same-thread.ts';

keepThreads();

/** Whatever is broken around a hook, the client goes on: code 0, at most 1,500 bytes, and an end. */

vi.setConfig({ testTimeout: 60_000 });

const BIN = join(import.meta.dirname, '..', '..', 'bin', 'svc.js');
const BYTES_MAX = 1_500;
/** Only what waits without a deadline takes longer, on any machine. */
const ENDS_MS = 20_000;
const FACT = 'The staging database of the marmalade service listens on port 6543, not on 5432.';
const ASKED = 'Which port does the staging database of the marmalade service use?';
const ANSWER = 'The staging database of the marmalade service listens on port 6544 since June.';

type Write = (stdin: Writable, event: string) => void;

interface Told {
  readonly text: string;
  readonly code: number | null;
}

const whole: Write = (stdin, event) => stdin.end(event);

function run(
  stage: HookStage,
  {
    write = whole,
    env = stage.environment,
    client = 'claude',
    event = 'UserPromptSubmit',
    session = 's9',
    mounts = '',
  } = {},
): Promise<Told> {
  const input = {
    session_id: session,
    transcript_path: stage.transcript(session),
    cwd: stage.project,
    prompt_id: 'p1',
    prompt: ASKED,
    last_assistant_message: ANSWER,
  };
  return new Promise((resolve, reject) => {
    const { PATH = '' } = process.env;
    const hook = [process.execPath, BIN, 'hook', client, event];
    const [file = '', ...args] =
      mounts === '' ? hook : [...OWN_MOUNTS, 'sh', '-c', `${mounts} && exec "$@"`, 'sh', ...hook];
    const child = spawn(file, args, { env: { ...env, PATH } });
    const late = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error('The hook does not end.'));
    }, ENDS_MS);
    let text = '';
    child.stdout.on('data', (piece: Buffer) => (text += piece.toString()));
    child.stderr.on('data', (piece: Buffer) => (text += piece.toString()));
    child.stdin.on('error', () => undefined);
    child.on('close', (code) => {
      clearTimeout(late);
      resolve({ text, code });
    });
    write(child.stdin, JSON.stringify(input));
  });
}

async function stageWithFact(): Promise<HookStage> {
  const stage = new HookStage();
  await stage.tell('s1', FACT, `Noted: ${FACT}`);
  return stage;
}

/** A mount that only this command and its children see. */
const OWN_MOUNTS = ['unshare', '-m'];
const [unshare = '', ...flags] = OWN_MOUNTS;
const canMount = spawnSync(unshare, [...flags, 'true']).status === 0;

const EVENTS = [
  'SessionStart',
  'UserPromptSubmit',
  'PostToolUse',
  'PreCompact',
  'Stop',
  'SessionEnd',
];

/** What was said is kept at these. */
const KEEPING = ['Stop', 'SessionEnd'];

const SILENT: Told = { text: '', code: 0 };

test('a pipe that stays open behind the event gets the answer', async () => {
  const stage = await stageWithFact();
  let attempts = 0;
  const ask = async (): Promise<string> => {
    // A busy machine may need longer than a hook has.
    attempts += 1;
    const write: Write = (stdin, event) => stdin.write(event);
    const { text, code } = await run(stage, { write, session: `s${attempts}0` });
    expect(code).toBe(0);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(BYTES_MAX);
    return text;
  };
  await expect.poll(ask, { timeout: 40_000 }).toContain('6543');
});

test.each<[string, Write]>([
  ['never brings anything', () => undefined],
  ['never ends its text', (stdin) => stdin.write('{"session_id":"s9","prompt":"')],
  ['is closed at once', (stdin) => stdin.end()],
  ['brings garbage', (stdin) => stdin.end('}}}}\0\u00ff{'.repeat(20_000))],
  ['brings 100 MB', (stdin) => stdin.end(Buffer.alloc(100 << 20, '}'))],
  ['brings 100 MB of one text', (stdin) => stdin.end(`{"prompt":"${'a'.repeat(100 << 20)}"}`)],
])('an input that %s is answered with silence', async (_name, write) => {
  expect(await run(new HookStage(), { write })).toEqual(SILENT);
});

test('an output of a tool of 20 MB ends the hook like any other', async () => {
  const write: Write = (stdin, event) => {
    const output = 'a } b '.repeat(3_500_000);
    stdin.end(JSON.stringify({ ...JSON.parse(event), tool_response: output }));
  };
  expect(await run(await stageWithFact(), { write, event: 'PostToolUse' })).toEqual(SILENT);
});

/** As a backup does that copies them: nobody else may even read. Returns what lets go of them. */
function holdLocks(stage: HookStage): () => void {
  const databases = ['state.db', 'memory.db'].map((name) => {
    const database = loadDriver().open(join(stage.data, name));
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('BEGIN EXCLUSIVE');
    return database;
  });
  const release = (): void => {
    for (const database of databases.splice(0)) database.close();
  };
  onTestFinished(release);
  return release;
}

/** By a process of its own: this one would not let go of the files. */
async function stageWithFiles(): Promise<HookStage> {
  const stage = new HookStage();
  const { home, project: cwd, environment: env } = stage;
  expect((await runCli(['memory', 'add', FACT], { home, env, cwd })).code).toBe(0);
  return stage;
}

test.each(EVENTS.filter((event) => !KEEPING.includes(event)))(
  'where another process holds the locks of both files %s is silent',
  async (event) => {
    const stage = await stageWithFiles();
    holdLocks(stage);
    expect(await run(stage, { event })).toEqual(SILENT);
  },
);

test.each([
  { client: 'claude', event: 'Stop' },
  { client: 'claude', event: 'SessionEnd' },
  { client: 'opencode', event: 'stop' },
])(
  'what $event of $client brings while another process holds the locks of both files is kept once they are free',
  async ({ client, event }) => {
    const stage = await stageWithFiles();
    const release = holdLocks(stage);
    stage.write('s9', ASKED, { type: 'text', text: ANSWER });
    expect(await run(stage, { client, event })).toEqual(SILENT);
    release();
    const texts = async () => (await stage.records()).map(({ text }) => text);
    await expect.poll(texts, { timeout: 40_000 }).toEqual(expect.arrayContaining([ASKED, ANSWER]));
  },
);

const READ_ONLY =
  'mount --bind "$SVC_DATA_HOME" "$SVC_DATA_HOME" && mount -o remount,bind,ro "$SVC_DATA_HOME"';
/** The files of the data folder, and not one byte more. */
const FULL = `cp -a "$SVC_DATA_HOME" "$HOME/copy" && mount -t tmpfs -o size=16m none "$SVC_DATA_HOME" &&
  cp -a "$HOME/copy/." "$SVC_DATA_HOME" && { cat /dev/zero > "$SVC_DATA_HOME/rest" 2> "$HOME/full"; [ -s "$HOME/full" ]; }`;

test.skipIf(!canMount).each(
  EVENTS.flatMap((event) => [
    { disk: 'may not be written', mounts: READ_ONLY, event },
    { disk: 'is full', mounts: FULL, event },
  ]),
)(
  'where the disk of the data folder $disk $event ends, and says nothing wrong',
  async ({ mounts, event }) => {
    const stage = await stageWithFact();
    const { text, code } = await run(stage, { mounts, event });
    expect(code).toBe(0);
    // One JSON object or nothing.
    if (text !== '') expect(JSON.parse(text)).toHaveProperty('hookSpecificOutput');
  },
);

test.each(['UserPromptSubmit', 'Stop'])(
  'without a folder for data, or without a home, %s says nothing',
  async (event) => {
    const stage = new HookStage();
    writeFileSync(stage.data, 'no folder');
    expect(await run(stage, { event })).toEqual(SILENT);
    const { project } = stage;
    for (const env of [
      {},
      { HOME: '' },
      { HOME: 'relative' },
      { HOME: '/nonexistent' },
      { HOME: project, SVC_CONFIG_HOME: BIN },
    ]) {
      const data = join(project, 'data');
      expect(await run(stage, { event, env: { ...env, SVC_DATA_HOME: data } })).toMatchObject({
        code: 0,
      });
    }
  },
);

test('a stranger on the address of a proxy that is gone keeps nobody waiting, and learns nothing', async () => {
  const stage = await stageWithFact();
  const port = await freePort();
  stage.configure({ ...validConfig(), proxy: { port } });
  let heard = '';
  const stranger = createServer((socket) =>
    socket.on('data', (piece) => (heard += piece.toString())),
  );
  await new Promise<void>((resolve) => stranger.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void stranger.close());
  mkdirSync(stage.data, { recursive: true });
  const file = { pid: process.pid, host: '127.0.0.1', port, version: '0.1.2', startedAt: 1 };
  writeFileSync(join(stage.data, `proxy-${process.pid}.json`), JSON.stringify(file));
  expect((await run(stage)).code).toBe(0);
  expect(heard).not.toMatch(/marmalade|Bearer|svc_local/);
});
