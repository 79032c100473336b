import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { findTranscripts } from '../../../src/adapters/foreign/transcript-files.ts';
import type { ProviderRecord } from '../../support/scripted-provider/provider-record.ts';
import {
  type ScriptedProvider,
  startScriptedProvider,
} from '../../support/scripted-provider/provider.ts';
import { strictSettings } from '../../support/strict-provider/settings.ts';
import { StrictProvider } from '../../support/strict-provider/strict-provider.ts';
import { clientEnvironment, runClaude } from './claude-code.ts';
import { runCodex } from './codex.ts';
import { type ClientName, type InstalledClient, binaryOf } from './installed-client.ts';
import { type ProgramEnd, runProgram } from './program.ts';
import type { ClientPlace } from './stage.ts';

/** Real clients whose hooks run svc, and which ask the provider directly: no proxy runs. */

export const HOOKED = [
  'claude',
  'codex',
  'opencode',
  'pi',
  'copilot',
] as const satisfies readonly ClientName[];
export type HookedName = (typeof HOOKED)[number];

/** What the client presents to the provider. A proxy would put the provider's own key in its place. */
export const CLIENT_KEY = 'key-of-the-client-itself';

export interface HookedStage extends ClientPlace {
  readonly provider: ScriptedProvider;
  readonly strict: StrictProvider;
  /** The data folder of svc. */
  readonly data: string;
  /** A command of svc, as the person types it. */
  type(...args: readonly string[]): Promise<ProgramEnd>;
  /** Writes the configuration of svc: without one it keeps its memory in this home. */
  configure(config: object): void;
}

export async function openHookedStage(account: 'new' | 'old' = 'new'): Promise<HookedStage> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-hooked-'));
  const newFolder = (name: string): string => {
    mkdirSync(join(folder, name), { recursive: true });
    return join(folder, name);
  };
  const provider = await startScriptedProvider();
  onTestFinished(async () => {
    await provider.stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
  });
  const strict = new StrictProvider(strictSettings({ account }));
  provider.options = { strict };
  const home = newFolder('home');
  const project = newFolder('project');
  const place = { provider, strict, home, project, url: provider.url, svc: { token: CLIENT_KEY } };
  const type = (...args: readonly string[]): Promise<ProgramEnd> =>
    runProgram({
      file: process.execPath,
      args: [SVC, ...args],
      folder: project,
      env: { ...clientEnvironment(place), NO_COLOR: '1' },
    }).ended;
  const configure = (config: object): void => {
    const configFolder = join(home, '.config', 'svc');
    mkdirSync(configFolder, { recursive: true, mode: 0o700 });
    const text = JSON.stringify({ version: 1, upstreams: [], ...config });
    writeFileSync(join(configFolder, 'config.json'), text, { mode: 0o600 });
  };
  return { ...place, data: join(home, '.local', 'share', 'svc'), type, configure };
}

export const SVC =
  process.env['SVC_TEST_PROGRAM'] ?? join(import.meta.dirname, '..', '..', '..', 'bin', 'svc.js');

export interface Asked {
  readonly prompt: string;
  /** Goes on with this session; `forked`: in a new one that begins with everything of this one. */
  readonly session?: string;
  readonly isForked?: boolean;
  readonly args?: readonly string[];
}

export interface Clients {
  readonly node24: InstalledClient;
  readonly of: (name: HookedName) => InstalledClient;
}

/** Asks a client, and fails where it does. */
export async function ask(
  name: HookedName,
  stage: HookedStage,
  clients: Clients,
  asked: Asked,
): Promise<ProgramEnd> {
  const end = await ASK[name](stage, clients, asked);
  expect(end, end.stderr).toMatchObject({ status: 0 });
  return end;
}

export const CLAUDE_MODEL = 'claude-opus-5-5';
/** Binds thinking too. This release of pi asks for thinking in a form that Opus 5.5 refuses. */
const PI_MODEL = 'claude-opus-5';
export const CODEX_MODEL = 'gpt-6';

type Ask = (stage: HookedStage, clients: Clients, asked: Asked) => Promise<ProgramEnd>;

const ASK: Readonly<Record<HookedName, Ask>> = {
  claude: (stage, { of }, { prompt, session, isForked, args = [] }) =>
    runClaude(of('claude'), stage, {
      prompt,
      args: [
        '--model',
        CLAUDE_MODEL,
        ...(session === undefined ? [] : ['--resume', session]),
        ...(isForked === true ? ['--fork-session'] : []),
        ...args,
      ],
    }),
  codex: (stage, { of }, { prompt, session, isForked, args = [] }) =>
    runCodex(of('codex'), stage, {
      prompt,
      model: CODEX_MODEL,
      ...(session !== undefined && { [isForked === true ? 'forked' : 'resumed']: session }),
      // A person trusts them in the window of Codex.
      args: ['--dangerously-bypass-hook-trust', ...args],
    }),
  opencode: (stage, clients, { prompt, session, isForked, args = [] }) => {
    const model = { reasoning: true, options: { thinking: { type: 'adaptive' } } };
    const options = { baseURL: `${stage.url}/v1`, apiKey: CLIENT_KEY };
    const provider = { npm: '@ai-sdk/anthropic', options, models: { [CLAUDE_MODEL]: model } };
    write(join(stage.home, '.config', 'opencode', 'opencode.json'), {
      provider: { own: provider },
      autoupdate: false,
    });
    return run(stage, clients, 'opencode', [
      'run',
      '-m',
      `own/${CLAUDE_MODEL}`,
      ...(session === undefined ? [] : ['--session', session]),
      ...(isForked === true ? ['--fork'] : []),
      ...args,
      prompt,
    ]);
  },
  pi: (stage, clients, { prompt, session, isForked, args = [] }) => {
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const size = { contextWindow: 200_000, maxTokens: 8_000 };
    const model = {
      id: PI_MODEL,
      name: 'own',
      reasoning: true,
      input: ['text'],
      cost,
      ...size,
    };
    const provider = { baseUrl: stage.url, api: 'anthropic-messages', apiKey: CLIENT_KEY };
    write(join(stage.home, '.pi', 'agent', 'models.json'), {
      providers: { own: { ...provider, models: [model] } },
    });
    return run(stage, clients, 'pi', [
      '-p',
      '--provider',
      'own',
      '--model',
      PI_MODEL,
      ...(session === undefined ? [] : [isForked === true ? '--fork' : '--session', session]),
      ...args,
      prompt,
    ]);
  },
  copilot: (stage, clients, { prompt, session, args = [] }) =>
    run(stage, clients, 'copilot', [
      '--model',
      CLAUDE_MODEL,
      '--allow-all-tools',
      ...(session === undefined ? [] : [`--resume=${session}`]),
      ...args,
      '-p',
      prompt,
    ]),
};

function write(path: string, value: object): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify(value));
}

function run(
  stage: HookedStage,
  { of, node24 }: Clients,
  name: HookedName,
  args: readonly string[],
): Promise<ProgramEnd> {
  const folders = [dirname(binaryOf(node24, 'node')), dirname(binaryOf(of(name), 'any'))];
  return runProgram({
    file: binaryOf(of(name), name),
    args,
    folder: stage.project,
    env: {
      ...clientEnvironment(stage),
      PATH: [...folders, process.env['PATH'] ?? ''].join(delimiter),
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      // With a plugin opencode waits for npm, which gives up after two minutes without a network (issue 47212 of it).
      npm_config_fetch_retries: '0',
      PI_OFFLINE: '1',
      COPILOT_OFFLINE: 'true',
      COPILOT_PROVIDER_TYPE: 'anthropic',
      COPILOT_PROVIDER_BASE_URL: stage.url,
      COPILOT_PROVIDER_API_KEY: CLIENT_KEY,
    },
  }).ended;
}

/** The session that the client wrote to last. */
export function newestSession(name: HookedName, { home }: Pick<HookedStage, 'home'>): string {
  const client = name === 'claude' ? 'claude-code' : name;
  const newest = findTranscripts(client, { home, environment: {} }).at(-1);
  return newest?.session ?? /[\da-f]{8}-[\da-f-]{27}/.exec(newest?.path ?? '')?.[0] ?? '';
}

/** The requests of conversations since `from`, without side calls such as titles. */
export function conversationCalls({ provider }: HookedStage, from = 0): readonly ProviderRecord[] {
  return provider.records.slice(from).filter(({ decision, json }) => {
    const { tools = [] } = (json ?? {}) as { tools?: readonly unknown[] };
    return decision !== undefined && tools.length > 0;
  });
}
