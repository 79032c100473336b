import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { clientEnvironment } from './claude-code.ts';
import { type InstalledClient, binaryOf } from './installed-client.ts';
import { type Program, type ProgramEnd, runProgram } from './program.ts';
import type { ClientPlace } from './stage.ts';

/**
 * 'plain': as `svc print-config codex` says. 'websocket': the provider claims to speak WebSocket.
 * 'signed-in': a ChatGPT sign-in, which makes Codex compress its bodies with zstd.
 */
export type CodexSetup = 'plain' | 'websocket' | 'signed-in';

export interface CodexStart {
  readonly prompt: string;
  /** Files of the project, given with the prompt. */
  readonly pictures?: readonly string[];
  /** Goes on with the newest session. */
  readonly isResumed?: boolean;
  /** Begins a new session with everything of this one. */
  readonly forked?: string;
  /** Goes on with this session. */
  readonly resumed?: string;
  readonly args?: readonly string[];
  readonly setup?: CodexSetup;
  readonly model?: string;
  /** Another server than the stage's. */
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly token?: string;
  readonly project?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Lines at the end of its config.toml. */
  readonly config?: readonly string[];
}

export function startCodex(
  client: InstalledClient,
  stage: ClientPlace,
  start: CodexStart,
): Program {
  const token = start.token ?? stage.svc.token;
  const folder = join(stage.home, '.codex');
  mkdirSync(folder, { recursive: true });
  const config = [codexConfig(start.url ?? stage.url, start), ...(start.config ?? [])].join('\n');
  writeFileSync(join(folder, 'config.toml'), config);
  if (start.setup === 'signed-in') writeFileSync(join(folder, 'auth.json'), signIn(token));
  const pictures = (start.pictures ?? []).map((path) => `--image=${path}`);
  return runProgram({
    file: binaryOf(client, 'codex'),
    args: [
      'exec',
      ...earlierSession(start),
      '--skip-git-repo-check',
      ...pictures,
      ...(start.args ?? []),
      start.prompt,
    ],
    folder: start.project ?? stage.project,
    env: {
      ...clientEnvironment(stage),
      CODEX_HOME: folder,
      SVC_LOCAL_PROXY_TOKEN: token,
      ...start.env,
    },
  });
}

function earlierSession({ isResumed, forked, resumed }: CodexStart): readonly string[] {
  if (forked !== undefined) return ['fork', forked];
  if (resumed !== undefined) return ['resume', resumed];
  return isResumed === true ? ['resume', '--last'] : [];
}

export async function runCodex(
  client: InstalledClient,
  stage: ClientPlace,
  start: CodexStart,
): Promise<ProgramEnd> {
  return startCodex(client, stage, start).ended;
}

/** The config.toml that makes Codex use the proxy. */
export function codexConfig(
  url: string,
  {
    setup = 'plain',
    headers = {},
    model = 'gpt-5',
  }: Pick<CodexStart, 'setup' | 'headers' | 'model'> = {},
): string {
  const isSignedIn = setup === 'signed-in';
  const pairs = Object.entries(headers).map(([name, value]) => `"${name}" = "${value}"`);
  return [
    `model = "${model}"`,
    'model_provider = "svc"',
    '[model_providers.svc]',
    `name = "${isSignedIn ? 'OpenAI' : 'svc local proxy'}"`,
    `base_url = "${url}/v1"`,
    'wire_api = "responses"',
    isSignedIn ? 'requires_openai_auth = true' : 'env_key = "SVC_LOCAL_PROXY_TOKEN"',
    `supports_websockets = ${setup === 'websocket'}`,
    `http_headers = { ${pairs.join(', ')} }`,
    '',
  ].join('\n');
}

/** An invented, unsigned sign-in whose access token is the local token. */
function signIn(token: string): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const account = { chatgpt_plan_type: 'plus', chatgpt_account_id: 'acc1', user_id: 'u1' };
  const claims = {
    email: 'a@example.com',
    exp: 4_102_444_800,
    'https://api.openai.com/auth': account,
  };
  const idToken = `${encode({ alg: 'none' })}.${encode(claims)}.c2ln`;
  return JSON.stringify({
    auth_mode: 'chatgpt',
    tokens: { id_token: idToken, access_token: token, refresh_token: 'none', account_id: 'acc1' },
    last_refresh: new Date().toISOString(),
  });
}
