import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/adapters/store/database.ts';
import { Descriptors } from '../../src/adapters/store/descriptors.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { Outputs } from '../../src/adapters/store/outputs.ts';
import { Records } from '../../src/adapters/store/records.ts';
import { BIN } from './cli.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from './config.ts';
import { homeWith } from './home.ts';
import { startProxyProcess } from './proxy-process.ts';
import { FACTS, outputRecordOf, recordOf } from './records.ts';
import { startScriptedProvider } from './scripted-provider/provider.ts';
import { StrictProvider } from './strict-provider/strict-provider.ts';
import { longOutput } from './tool-session.ts';

/** `svc memory forget` of a space beside a proxy that answers all the time. */

const WORD = 'zebrafishlantern';
const FORGOTTEN = 'tide';
const FACT = `The gateway of the walrus shop listens on port 6431 of the ${WORD}.`;
const QUESTION = 'On which port does the gateway of the walrus shop listen?';
const BERTH = 'What does berth 17 have?';
const BATCH = 64;
/** The other space has so many of the memories. */
const KEPT_SHARE = 0.1;
/** So long after its start a command has begun to forget. */
const START_MS = 400;
const FORGET_MS = 3;

export interface ForgetSizes {
  readonly memories: number;
  readonly kills: number;
  /** The same moments for the same number. */
  readonly seed: number;
}

/** Kills the command again and again, lets it finish, and looks for the words everywhere. */
export async function forgetBeside({ memories, kills, seed }: ForgetSizes): Promise<void> {
  const strict = new StrictProvider();
  const provider = await startScriptedProvider({ strict });
  onTestFinished(() => provider.stop());
  const upstream = { name: 'anthropic', apiStyle: 'anthropic_messages', baseUrl: provider.url };
  const home = homeWith({
    ...validConfig(),
    upstreams: [{ ...upstream, providerKey: PROVIDER_KEY, allowPrivate: true }],
  });
  const folder = join(home, 'data');
  const env = { SVC_DATA_HOME: folder };
  fill(folder, memories);
  const proxy = await startProxyProcess(home, env);
  const talk = new Talk(proxy.url);

  const isQuoted = (): boolean => provider.records.at(-1)?.body.includes(WORD) ?? false;
  let old = '';
  // A proxy that has just started may be late.
  await expect
    .poll(async () => {
      old = `old-${provider.records.length}`;
      await talk.ask(FORGOTTEN, old, QUESTION);
      return isQuoted();
    })
    .toBe(true);
  await talk.ask(FORGOTTEN, old, 'Thank you, and what is the weather?');
  expect(isQuoted()).toBe(true);
  expect(holdersOf(folder)).not.toEqual([]);

  const traffic = new Traffic(talk);
  const command = ['memory', 'forget', '--space', FORGOTTEN, '--yes'];
  const wholeMs = START_MS + memories * FORGET_MS;
  for (let kill = 0; kill < kills; kill += 1) {
    const options = { env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env } };
    const child = spawn(process.execPath, [BIN, ...command], { ...options, stdio: 'ignore' });
    const gone = once(child, 'close');
    // oxlint-disable-next-line no-await-in-loop
    await Promise.race([sleep((fractionOf(seed + kill) * wholeMs * 2) / kills), gone]);
    child.kill('SIGKILL');
    // oxlint-disable-next-line no-await-in-loop
    await gone;
  }
  // Without another command: the proxy ends what it finds begun.
  if (isBegun(folder)) {
    await expect.poll(() => isBegun(folder), { timeout: wholeMs * 4 + 60_000 }).toBe(false);
    expect(holdersOf(folder)).toEqual([]);
  }
  const { code, stderr } = await finished(command, home, env);
  expect([code, stderr]).toEqual(
    code === 0
      ? [0, expect.stringContaining('Forgotten: ')]
      : [1, expect.stringContaining('No memory matches')],
  );

  const before = provider.records.length;
  for (const [name, prompt] of [
    ['new', QUESTION],
    [old, QUESTION],
    ['other', BERTH],
  ] as const) {
    // oxlint-disable-next-line no-await-in-loop
    await talk.ask(FORGOTTEN, name, prompt);
  }
  const later = provider.records.slice(before);
  expect(later.length).toBeGreaterThan(2);
  expect(later.filter(({ body }) => body.includes(WORD))).toEqual([]);
  const asked = await traffic.stop();
  expect(asked).toBeGreaterThan(kills);
  expect([talk.failures, strict.refusals, strict.lost]).toEqual([[], [], []]);
  expect(proxy.stderr()).not.toMatch(/damaged|replaced|stopped/);
  expect(holdersOf(folder)).toEqual([]);
  await proxy.kill('SIGTERM');
  expect(holdersOf(folder)).toEqual([]);
}

/** One process writes them, in large transactions: a proxy would need minutes. */
function fill(folder: string, memories: number): void {
  const database = openIn(folder);
  const records = new Records(database);
  for (let first = 0; first < memories; first += BATCH) {
    const numbers = Array.from(
      { length: Math.min(BATCH, memories - first) },
      (_, at) => first + at,
    );
    records.capture(numbers.map((at) => memoryOf(at, FORGOTTEN, WORD)));
    const kept = numbers.slice(0, Math.ceil(numbers.length * KEPT_SHARE));
    records.capture(kept.map((at) => memoryOf(at, 'project', 'kestrel')));
  }
  records.capture([recordOf(FACT, { space: FORGOTTEN, conversation: 'walrus' })]);
  const output = outputRecordOf(`The log of the ${WORD}.`, { space: FORGOTTEN });
  new Outputs(database).keep([output], Date.now());
  database.checkpoint();
  database.close();
}

function memoryOf(at: number, space: string, word: string) {
  const facts = Array.from({ length: 1 + (at % 5) }, (_, next) => FACTS[(at * 7 + next) % 50]);
  const text = `Berth ${at} has the ${word}. ${facts.join(' ')} Number ${at} of the ${word}s.`;
  const conversation = `${space} ${Math.floor(at / 40)}`;
  return recordOf(text, { space, conversation, exchange: at % 40, at: 1e12 + at });
}

function openIn(folder: string) {
  const [driver, descriptors] = [loadDriver(), new Descriptors()];
  return openDatabase({ folder, driver, descriptors, now: 1, report: () => undefined });
}

/** Something is noted that is still to be forgotten. */
function isBegun(folder: string): boolean {
  const connection = loadDriver().open(join(folder, 'memory.db'), { readOnly: true });
  try {
    const sql =
      'SELECT EXISTS (SELECT 1 FROM to_forget) OR EXISTS (SELECT 1 FROM forgetting) AS it';
    const row = connection.prepare(sql).get();
    return row !== null && typeof row === 'object' && Reflect.get(row, 'it') === 1;
  } finally {
    connection.close();
  }
}

/** However long it takes. */
async function finished(
  command: readonly string[],
  home: string,
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const child = spawn(process.execPath, [BIN, ...command], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  await once(child, 'close');
  return { code: child.exitCode, stderr };
}

/** A client's conversations. */
class Talk {
  readonly failures: string[] = [];
  readonly #url: string;
  readonly #messages = new Map<string, object[]>();

  constructor(url: string) {
    this.#url = url;
  }

  /** Sends the whole conversation with this prompt or these results behind it. */
  async ask(space: string, name: string, content: unknown): Promise<void> {
    const messages = this.#messages.get(name) ?? [];
    this.#messages.set(name, messages);
    messages.push({ role: 'user', content });
    const answer = await fetch(`${this.#url}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
        'x-api-key': LOCAL_TOKEN,
        'x-svc-memory-space': space,
        'x-claude-code-session-id': name,
      },
      body: JSON.stringify({
        model: 'claude-sonnet-4-5',
        max_tokens: 1024,
        messages,
        tools: TOOLS,
      }),
    });
    const text = await answer.text();
    if (answer.status !== 200) this.failures.push(`${answer.status} ${text}`);
    messages.push({ role: 'assistant', content: 'Done.' });
  }

  /** As if the model had called a tool. */
  called(name: string, id: string): void {
    const messages = this.#messages.get(name) ?? [];
    messages.pop();
    const call = { type: 'tool_use', id, name: 'Bash', input: { command: `cat ${id}` } };
    messages.push({ role: 'assistant', content: [call] });
  }
}

const TOOLS = [{ name: 'Bash', input_schema: { type: 'object' } }];
/** A new conversation after so many requests. */
const REQUESTS_EACH = 12;

/** Tool loops, one request after the other, until it is stopped. */
class Traffic {
  #isStopped = false;
  #asked = 0;
  readonly #running: Promise<void>;

  constructor(talk: Talk) {
    this.#running = this.#run(talk);
  }

  /** The number of requests. */
  async stop(): Promise<number> {
    this.#isStopped = true;
    await this.#running;
    return this.#asked;
  }

  async #run(talk: Talk): Promise<void> {
    for (; !this.#isStopped; this.#asked += 1) {
      const name = `busy-${Math.floor(this.#asked / REQUESTS_EACH)}`;
      const at = this.#asked % REQUESTS_EACH;
      const id = `c${this.#asked}`;
      const result = {
        type: 'tool_result',
        tool_use_id: `c${this.#asked - 1}`,
        content: longOutput(id, 300),
      };
      const content =
        at === 0 ? `Who owns dashboard ${this.#asked}, and where is berth ${at}?` : [result];
      // oxlint-disable-next-line no-await-in-loop -- A tool loop.
      await talk.ask('project', name, content);
      talk.called(name, id);
      // oxlint-disable-next-line no-await-in-loop -- A tool takes a moment.
      await sleep(20);
    }
  }
}

function holdersOf(folder: string): readonly string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = files.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  return paths.filter((path) => existsSync(path) && readFileSync(path).includes(WORD));
}

/** From 0 to 1, the same for the same number. */
function fractionOf(number: number): number {
  return (Math.imul(number, 2_654_435_761) >>> 0) / 2 ** 32;
}
