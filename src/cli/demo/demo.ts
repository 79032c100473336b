import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalToken } from '../../adapters/processes/local-token.ts';
import { parseConfig } from '../../core/settings/config-schema.ts';
import type { Settings } from '../../core/settings/settings.ts';
import type { DialectDescriptor } from '../../core/dialects/descriptor.ts';
import { DIALECT_DESCRIPTORS } from '../../core/dialects/dialects.ts';
import { sampleOf, memberAt, textAt } from '../../core/dialects/samples.ts';
import { CliError, type ExitCode } from '../cli-error.ts';
import { startProxy } from '../compose.ts';
import type { Terminal } from '../terminal.ts';
import { type ServerResponse, createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { SseReader } from '../../core/answer/sse.ts';
import { DEMO_CLIENT, CLIENT_HEADER } from '../../core/request/clients.ts';
import { once } from 'node:events';
import { urlOf } from '../listing.ts';
import {
  callProxy,
  type LocalAnswer,
  type ProxyAddress,
} from '../../adapters/processes/local-calls.ts';
import type { Call } from '../context.ts';

/** Runs `svc demo`: shows svc without a key or a configuration. Only the provider and the client are simulated. */

const FACT = 'The staging database of our shop listens on port 6431 of the host walrus-seven.';
/** A word of the fact that no model can guess. */
const GIST = 'walrus-seven';
/** Questions about the fact, one for each dialect. */
const QUESTIONS = [
  'On which host and port does the staging database of our shop listen?',
  'Which host and port does our shop use for the staging database?',
  'Where does the staging database of our shop listen, host and port?',
] as const;

/**
 * Deadline of a recall, in milliseconds. The demo asks at once after the start, and a busy machine may need more than
 * the usual 300 ms to open the store.
 */
const RECALL_MS = 10_000;

const SHOWN_HEADERS = [
  'x-svc-memory-state',
  'x-svc-recalled-tokens',
  'x-svc-original-input-tokens',
  'x-svc-forwarded-input-tokens',
  'x-svc-continuity-state',
];

/** Runs the demo. Returns 0 only if the fact was recalled in every dialect, streamed and in one piece. */
export async function demo({ context: { terminal } }: Call): Promise<ExitCode> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  const provider = await startDemoProvider();
  try {
    const stage = { folder, provider, terminal, settings: demoSettings(provider.url) };
    return (await runSessions(stage)) ? 0 : 1;
  } finally {
    await provider.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface DemoStage {
  readonly folder: string;
  readonly provider: DemoProvider;
  readonly terminal: Terminal;
  readonly settings: Settings;
}

async function runSessions(stage: DemoStage): Promise<boolean> {
  const { terminal } = stage;
  terminal.out('svc demo: a stand-in provider, the real proxy, the real store, no key.');
  await withProxy(stage, (proxy) => stateFact(stage, proxy));
  terminal.out('');
  terminal.out('svc is stopped and started again: what it knows now comes from the disk.');
  const missed = await withProxy(stage, (proxy) => askEverywhere(stage, proxy));
  terminal.out('');
  if (missed.length === 0) {
    terminal.out('Recalled in all three dialects, streamed and whole.');
    return true;
  }
  terminal.error(`Not recalled: ${missed.join(', ')}.`);
  return false;
}

async function stateFact(stage: DemoStage, proxy: ProxyAddress): Promise<void> {
  const { terminal } = stage;
  const [dialect] = DIALECT_DESCRIPTORS;
  if (dialect === undefined) return;
  const answer = await ask(stage, { proxy, dialect, text: FACT, memoryMode: 'read-write' });
  terminal.out('');
  terminal.out(`Session 1, ${dialect.title}, streamed`);
  terminal.out(`  you       ${FACT}`);
  terminal.out(`  model     ${answer.text}`);
}

/**
 * Asks in every dialect, streamed and in one piece. Returns where the fact was not recalled, and where the answer had
 * it without memory.
 */
async function askEverywhere(stage: DemoStage, proxy: ProxyAddress): Promise<readonly string[]> {
  const { terminal } = stage;
  const missed: string[] = [];
  for (const [index, dialect] of DIALECT_DESCRIPTORS.entries()) {
    const question = QUESTIONS[index % QUESTIONS.length] ?? QUESTIONS[0];
    terminal.out('');
    terminal.out(`Session ${index + 2}, a new conversation, ${dialect.title}`);
    terminal.out(`  you       ${question}`);
    // These sessions store nothing, so that each recalls only the first session.
    const base = { proxy, dialect, text: question };
    const without = await ask(stage, { ...base, memoryMode: 'off' });
    terminal.out(`  no memory ${without.text}`);
    const streamed = await ask(stage, { ...base, memoryMode: 'read' });
    showAdded(stage, dialect, question);
    terminal.out(`  model     ${streamed.text}`);
    showHeaders(terminal, streamed);
    const again = { ...base, text: `${question} Say it once more.`, isStreamed: false };
    const whole = await ask(stage, { ...again, memoryMode: 'read' });
    if (without.text.includes(GIST)) missed.push(`${dialect.title}, known without memory`);
    if (!isRecalled(streamed)) missed.push(`${dialect.title}, streamed`);
    if (!isRecalled(whole)) missed.push(`${dialect.title}, whole`);
  }
  return missed;
}

function isRecalled({ text: said, headers }: DemoAnswer): boolean {
  return said.includes(GIST) && headers['x-svc-memory-state'] === 'recalled';
}

/** Prints the part of the sent message that the user did not type. */
function showAdded(
  { provider, terminal }: DemoStage,
  dialect: DialectDescriptor,
  question: string,
): void {
  const left = textsIn(sampleOf(dialect.name).newestMessage(provider.received())).join('\n');
  const added = left.replace(question, '').trim();
  terminal.out(`  svc added ${added.split('\n').join('\n            ')}`);
}

function showHeaders(terminal: Terminal, { headers }: DemoAnswer): void {
  const shown = SHOWN_HEADERS.map((name) => `${name}: ${String(headers[name] ?? '(missing)')}`);
  terminal.out(`  headers   ${shown.join(', ')}`);
}

async function withProxy<Result>(
  { folder, settings, terminal }: DemoStage,
  use: (proxy: ProxyAddress) => Promise<Result>,
): Promise<Result> {
  const proxy = await startProxy({ settings, dataFolder: join(folder, 'data'), terminal });
  try {
    return await use(proxy);
  } finally {
    await proxy.stop();
  }
}

/** Returns a configuration like a user's, but with the simulated provider, any free port, and RECALL_MS. */
function demoSettings(providerUrl: string): Settings {
  const upstreams = DIALECT_DESCRIPTORS.map(({ name, defaultAuth }) => ({
    name: `stand-in-${name}`,
    apiStyle: name,
    baseUrl: providerUrl,
    providerKey: 'stand-in-provider-key',
    auth: defaultAuth,
    allowPrivate: true,
  }));
  const proxy = { port: 0, recallMs: RECALL_MS };
  const config = { version: 1, proxy, upstreams, localToken: createLocalToken() };
  const { settings, problems } = parseConfig(config, {});
  if (settings !== undefined) return settings;
  const paths = problems.map(({ path }) => path).join(', ');
  throw new CliError(`The demo's own configuration is wrong: ${paths}.`, 'Please report this.');
}

/** The name of the simulated provider's model. */
const DEMO_MODEL = 'stand-in';

/** A call of the demo's client: a new conversation of one message. */
interface DemoCall {
  readonly proxy: ProxyAddress;
  readonly dialect: DialectDescriptor;
  readonly text: string;
  readonly memoryMode: string;
  /** False: ask for an answer in one piece. Undefined: ask for a streamed one. */
  readonly isStreamed?: boolean;
}

interface DemoAnswer extends Pick<LocalAnswer, 'headers'> {
  readonly text: string;
}

const EVENT_CHARS_MAX = 65_536;

/** Sends a call to the proxy. Throws if there is no answer, or if its status is not 200. */
async function ask(
  { settings: { localToken } }: DemoStage,
  { proxy, dialect, text: question, memoryMode, isStreamed = true }: DemoCall,
): Promise<DemoAnswer> {
  const sample = sampleOf(dialect.name);
  const answer = await callProxy(proxy, {
    path: dialect.modelPath,
    headers: {
      authorization: `Bearer ${localToken}`,
      [CLIENT_HEADER]: DEMO_CLIENT,
      'x-svc-memory-mode': memoryMode,
    },
    body: JSON.stringify(sample.request(DEMO_MODEL, question, isStreamed)),
  });
  if (answer?.status !== 200) {
    throw new Error(`The proxy answered ${answer?.status ?? 'nothing'}: ${answer?.body ?? ''}`);
  }
  const { headers, body } = answer;
  const said = isStreamed ? streamedText(sample, body) : sample.textOf(JSON.parse(body));
  return { text: said, headers };
}

function streamedText(sample: ReturnType<typeof sampleOf>, body: string): string {
  let said = '';
  const take = (data: string): void => {
    if (data !== '[DONE]') said += sample.pieceOf(JSON.parse(data));
  };
  new SseReader(take, { eventCharsMax: EVENT_CHARS_MAX }).pushText(body);
  return said;
}

/**
 * The simulated provider. It answers a question only from the texts of the same request, so a right answer proves that
 * svc sent it the fact. It supports all three dialects.
 */
interface DemoProvider {
  readonly url: string;
  /** Returns the body of the last request. */
  received(): unknown;
  stop(): Promise<void>;
}

async function startDemoProvider(): Promise<DemoProvider> {
  let last: unknown;
  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      last = JSON.parse(await text(request));
      answerTo(request.url ?? '', last, response);
    };
    serve().catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  const url = urlOf({ host: address.address, port: address.port });
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { url, received: () => last, stop };
}

function answerTo(path: string, body: unknown, response: ServerResponse): void {
  const dialect = DIALECT_DESCRIPTORS.find((it) => it.modelPath === path);
  if (dialect === undefined) {
    response.writeHead(404).end();
    return;
  }
  const sample = sampleOf(dialect.name);
  const reply = answerFrom(textsIn(sample.newestMessage(body)));
  if (memberAt(body, 'stream') === true) return sendEvents(response, sample, reply);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(sample.answer(DEMO_MODEL, reply)));
}

/**
 * Returns an answer with the line that shares the most words with the question. If no line shares enough, the answer
 * says that it does not know; without a question it is 'Noted.'.
 */
function answerFrom(texts: readonly string[]): string {
  const lines = texts.flatMap((it) => it.split('\n'));
  const question = lines.find((line) => line.includes('?'));
  if (question === undefined) return 'Noted.';
  const asked = wordsOf(question);
  let best = { line: '', shared: 0 };
  for (const line of lines) {
    if (line.includes('?')) continue;
    const shared = [...wordsOf(line)].filter((word) => asked.has(word)).length;
    if (shared > best.shared) best = { line, shared };
  }
  // Two shared words may be a coincidence; a relevant line shares more.
  if (best.shared < 3) return 'I do not know: nothing in this request says it.';
  return `This request says: ${best.line.replace(/^- /, '')}`;
}

function wordsOf(line: string): ReadonlySet<string> {
  return new Set(line.toLowerCase().match(/[a-z]{4,}/g));
}

/** Returns the texts of a message, whose content is a string or a list of parts. */
function textsIn(message: unknown): readonly string[] {
  const content = memberAt(message, 'content');
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  return content.map((part) => textAt(part, 'text'));
}

function sendEvents(
  response: ServerResponse,
  sample: ReturnType<typeof sampleOf>,
  reply: string,
): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of sample.events(DEMO_MODEL, reply.match(/\S+\s*/g) ?? [])) {
    const name = 'type' in event ? `event: ${String(event.type)}\n` : '';
    response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
  }
  response.end(sample.streamEnd);
}
