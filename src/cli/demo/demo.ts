import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalToken } from '../../adapters/processes/local-token.ts';
import { parseConfig } from '../../core/settings/config-schema.ts';
import type { Settings } from '../../core/settings/settings.ts';
import type { DialectDescriptor } from '../../core/dialects/descriptor.ts';
import { DIALECT_DESCRIPTORS } from '../../core/dialects/dialects.ts';
import { sampleOf } from '../../core/dialects/samples.ts';
import { CliError, type ExitCode } from '../cli-error.ts';
import type { startProxy } from '../compose.ts';
import type { CommandContext } from '../context.ts';
import { type DemoAnswer, callModel } from './demo-client.ts';
import { type DemoProvider, startDemoProvider, textsIn } from './demo-provider.ts';
import type { Terminal } from '../terminal.ts';

/**
 * `svc demo`: the main job before the user's eyes, with no key and nothing left behind. The provider
 * is a stand-in; the proxy, its gate, its store and its relay are the real ones.
 */

export interface DemoParts {
  readonly startProxy: typeof startProxy;
}

const FACT = 'The staging database of our shop listens on port 6431 of the host walrus-seven.';
/** The part of the answer that cannot be guessed. */
const GIST = 'walrus-seven';
/** Each dialect asks in words of its own, so that none is answered with what another was given. */
const QUESTIONS = [
  'On which host and port does the staging database of our shop listen?',
  'Which host and port does our shop use for the staging database?',
  'Where does the staging database of our shop listen, host and port?',
] as const;

// The demo asks within milliseconds of the start, and a busy machine opens the store later than the
// 300 ms that a person's request would wait. It shows recall, not speed.
const RECALL_MS = 10_000;

const SHOWN_HEADERS = [
  'x-svc-memory-state',
  'x-svc-recalled-tokens',
  'x-svc-original-input-tokens',
  'x-svc-forwarded-input-tokens',
  'x-svc-continuity-state',
];

/** Exit code 0 only when the fact was recalled in every dialect, streamed and whole. */
export async function demo({ terminal }: CommandContext, parts: DemoParts): Promise<ExitCode> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  const provider = await startDemoProvider();
  try {
    const stage = { folder, provider, terminal, settings: demoSettings(provider.url), ...parts };
    return (await tellStory(stage)) ? 0 : 1;
  } finally {
    await provider.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface DemoStage extends DemoParts {
  readonly folder: string;
  readonly provider: DemoProvider;
  readonly terminal: Terminal;
  readonly settings: Settings;
}

async function tellStory(stage: DemoStage): Promise<boolean> {
  const { terminal } = stage;
  terminal.out('svc demo: a stand-in provider, the real proxy, the real store, no key.');
  await withProxy(stage, (url) => stateFact(stage, url));
  terminal.out('');
  terminal.out('svc is stopped and started again: what it knows now comes from the disk.');
  const missed = await withProxy(stage, (url) => askEverywhere(stage, url));
  terminal.out('');
  if (missed.length === 0) {
    terminal.out('Recalled in all three dialects, streamed and whole.');
    return true;
  }
  terminal.error(`Not recalled: ${missed.join(', ')}.`);
  return false;
}

async function stateFact(stage: DemoStage, url: string): Promise<void> {
  const { terminal } = stage;
  const [dialect] = DIALECT_DESCRIPTORS;
  if (dialect === undefined) return;
  const answer = await call(stage, { url, dialect, text: FACT, memoryMode: 'read-write' });
  terminal.out('');
  terminal.out(`Session 1, ${dialect.title}, streamed`);
  terminal.out(`  you       ${FACT}`);
  terminal.out(`  model     ${answer.text}`);
}

/** Names what was not recalled. */
async function askEverywhere(stage: DemoStage, url: string): Promise<readonly string[]> {
  const { terminal } = stage;
  const missed: string[] = [];
  for (const [index, dialect] of DIALECT_DESCRIPTORS.entries()) {
    const text = QUESTIONS[index % QUESTIONS.length] ?? QUESTIONS[0];
    terminal.out('');
    terminal.out(`Session ${index + 2}, a new conversation, ${dialect.title}`);
    terminal.out(`  you       ${text}`);
    // Each session has only the first one to remember.
    const base = { url, dialect, text };
    const without = await call(stage, { ...base, memoryMode: 'off' });
    terminal.out(`  no memory ${without.text}`);
    const streamed = await call(stage, { ...base, memoryMode: 'read' });
    showAdded(stage, dialect, text);
    terminal.out(`  model     ${streamed.text}`);
    showHeaders(terminal, streamed);
    const again = { ...base, text: `${text} Say it once more.`, isStreamed: false };
    const whole = await call(stage, { ...again, memoryMode: 'read' });
    if (without.text.includes(GIST)) missed.push(`${dialect.title}, known without memory`);
    if (!isRecalled(streamed)) missed.push(`${dialect.title}, streamed`);
    if (!isRecalled(whole)) missed.push(`${dialect.title}, whole`);
  }
  return missed;
}

function isRecalled({ text, headers }: DemoAnswer): boolean {
  return text.includes(GIST) && headers['x-svc-memory-state'] === 'recalled';
}

/** Shows the part of the message to the provider that was not typed. */
function showAdded(
  { provider, terminal }: DemoStage,
  dialect: DialectDescriptor,
  text: string,
): void {
  const left = textsIn(sampleOf(dialect.name).newestMessage(provider.received().body)).join('\n');
  const added = left.replace(text, '').trim();
  terminal.out(`  svc added ${added.split('\n').join('\n            ')}`);
}

function showHeaders(terminal: Terminal, { headers }: DemoAnswer): void {
  const shown = SHOWN_HEADERS.map((name) => `${name}: ${String(headers[name] ?? '(missing)')}`);
  terminal.out(`  headers   ${shown.join(', ')}`);
}

async function call(
  { settings }: DemoStage,
  asked: {
    readonly url: string;
    readonly dialect: DialectDescriptor;
    readonly text: string;
    readonly memoryMode: string;
    readonly isStreamed?: boolean;
  },
): Promise<DemoAnswer> {
  return callModel({ isStreamed: true, localToken: settings.localToken, ...asked });
}

async function withProxy<Result>(
  { folder, settings, terminal, startProxy: open }: DemoStage,
  use: (url: string) => Promise<Result>,
): Promise<Result> {
  const proxy = await open({
    settings,
    dataFolder: join(folder, 'data'),
    terminal,
  });
  try {
    return await use(`http://${proxy.host}:${proxy.port}`);
  } finally {
    await proxy.stop();
  }
}

/** A configuration like a user's own, but for the provider on this machine. */
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
