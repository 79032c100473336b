import type { Dialect } from '../../core/conversation/view.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import {
  CLAUDE_FOLDER,
  CODEX_FOLDER,
  codexAuthMode,
  hasLogin,
  readClientFile,
} from '../../adapters/foreign/client-files.ts';
import { TOKEN_HEADER, withPathToken } from '../../core/http/local-token.ts';
import { urlOf } from '../listing.ts';
import {
  claudeVariables,
  loopbackVariables,
  toolSearchVariables,
  CODEX_NAME,
  isAt,
} from './client-variables.ts';
import { parseToml } from '../../adapters/foreign/toml-text.ts';
import { asRecord } from '../../core/bytes/json-fields.ts';
import { tomlString } from '../../core/foreign/shell-quote.ts';
import { BLOCK_BEGIN } from '../../core/foreign/toml-block.ts';
import { execFile } from 'node:child_process';

/** A client as `svc run` starts it: with arguments and variables, and without a change to the client's files. */
export interface LaunchedClient {
  /** The program's name in the search path. */
  readonly program: string;
  /** The command that installs it. */
  readonly install: string;
  /** The dialects that the client can use through svc, best first. */
  readonly dialects: readonly [Dialect, ...Dialect[]];
  launch(facts: LaunchFacts): Promise<Launch> | Launch;
}

export interface LaunchFacts {
  readonly host: string;
  readonly port: number;
  readonly localToken: string;
  readonly environment: Environment;
  /** The configured provider of the client's first dialect; undefined if there is none. */
  readonly upstream: Draft | undefined;
  readonly upstreams: readonly Draft[];
  readonly args: readonly string[];
  /** Returns the output of `PROGRAM --version`; '' without output in time. */
  readonly version: () => Promise<string>;
}

export interface Launch {
  /** Arguments to put before the user's own. */
  readonly args: readonly string[];
  readonly environment: Environment;
  /** Lines for the user, for example about who pays. */
  readonly notes: readonly string[];
}

/** Says whether svc forwards the client's own login to this provider. */
export function takesLogin(upstream: Draft | undefined): boolean {
  return upstream?.['auth'] === 'client';
}

export const CLAUDE: LaunchedClient = {
  program: 'claude',
  install: 'npm install -g @anthropic-ai/claude-code',
  dialects: ['anthropic_messages'],
  launch({ host, port, localToken, environment, upstream }) {
    const access = { host, port, localToken };
    const shared = {
      ...environment,
      ...claudeVariables(access, { environment, authToken: true }),
      ...toolSearchVariables(upstream, environment),
      // If this key were set, the client would ask the user, and send the key beside the token or instead of the login.
      ANTHROPIC_API_KEY: undefined,
    };
    if (!takesLogin(upstream)) {
      return {
        args: [],
        // svc adds the provider's key, so the client must not send a token of its login.
        environment: { ...shared, CLAUDE_CODE_OAUTH_TOKEN: undefined },
        notes: hasLogin(environment, 'claude') ? [keyPays('Claude Code', 'claude')] : [],
      };
    }
    return {
      args: [],
      environment: {
        ...shared,
        // The client sends its own login as usual, so svc's token is in a separate header.
        ANTHROPIC_AUTH_TOKEN: undefined,
        ANTHROPIC_CUSTOM_HEADERS: withHeader(environment, `${TOKEN_HEADER}: ${localToken}`),
      },
      notes: [
        ...(hasLogin(environment, 'claude')
          ? []
          : ['Claude Code is not logged in yet: log in there, with /login.']),
        ...(hasKeySettings(environment)
          ? ['Its settings.json still holds svc’s settings for a key: svc connect claude']
          : []),
      ],
    };
  },
};

/** Returns the value of ANTHROPIC_CUSTOM_HEADERS, in which each line is a header, with one more header. */
function withHeader(environment: Environment, line: string): string {
  const own = (environment['ANTHROPIC_CUSTOM_HEADERS'] ?? '')
    .split('\n')
    .filter((one) => one.trim() !== '' && !one.toLowerCase().startsWith(`${TOKEN_HEADER}:`));
  return [...own, line].join('\n');
}

function hasKeySettings(environment: Environment): boolean {
  const text = readClientFile(environment, CLAUDE_FOLDER, 'settings.json');
  return text.includes('"apiKeyHelper"') && text.includes('config token');
}

/** Returns a warning that both a login and a key exist, so that the user knows which one pays. */
function keyPays(client: string, login: string): string {
  return `${client} has a subscription login, but svc has a provider key, so the provider bills the key per token. To use the login instead: svc setup --login ${login}`;
}

export const CODEX: LaunchedClient = {
  program: 'codex',
  install: 'npm install -g @openai/codex',
  dialects: ['openai_responses'],
  async launch(facts) {
    const { environment, upstream } = facts;
    const isLogin = takesLogin(upstream);
    const mode = codexAuthMode(environment);
    const knowsBuiltIn = isBuiltInConfigurable(await facts.version());
    // The built-in provider sends Codex's credential. If svc has a key, a ChatGPT login must not be sent.
    const hasCredential = isLogin || mode === 'key';
    // Only OpenAI accepts what the built-in provider sends. Codex's login is used only with OpenAI.
    const isOpenAi = isLogin || isAt('api.openai.com', upstream);
    if (knowsBuiltIn && isOpenAi && hasCredential) return builtIn(facts, mode);
    return ownProvider(facts, mode);
  },
};

/**
 * Makes a launch with Codex's built-in provider. Codex stores its history by provider, so sessions from before svc can
 * be resumed through svc, and the reverse.
 */
function builtIn(facts: LaunchFacts, mode: AuthMode): Launch {
  const { localToken, environment, host, upstream } = facts;
  const base = `${withPathToken(urlOf(facts), localToken)}/v1`;
  return {
    args: ['-c', `openai_base_url=${tomlString(base)}`, '-c', 'model_provider="openai"'],
    environment: { ...environment, ...loopbackVariables(host, environment) },
    notes: takesLogin(upstream) && mode !== 'login' ? [NOT_LOGGED_IN] : [],
  };
}

function ownProvider(facts: LaunchFacts, mode: AuthMode): Launch {
  const { host, localToken, environment, upstream } = facts;
  const isLogin = takesLogin(upstream);
  return {
    args: [...providerArgs(facts, isLogin), '-c', 'model_provider="svc"'],
    environment: {
      ...environment,
      ...loopbackVariables(host, environment),
      SVC_LOCAL_PROXY_TOKEN: localToken,
    },
    notes: [
      ...(isLogin && mode !== 'login' ? [NOT_LOGGED_IN] : []),
      ...(!isLogin && mode === 'login' ? [keyPays('Codex', 'codex')] : []),
      ...(mode === 'none' ? [] : [SEPARATE_HISTORY]),
    ],
  };
}

const NOT_LOGGED_IN = 'Codex is not logged in with ChatGPT. Run first: codex login';
const SEPARATE_HISTORY =
  'Codex keeps a separate history of sessions through svc. To see it, run: svc run codex -- resume';

function providerArgs(facts: LaunchFacts, isLogin: boolean): readonly string[] {
  const written = writtenBase(facts.environment);
  // Use the settings that svc wrote into the file: Codex refuses two ways of giving the token at once.
  if (written !== undefined && !isLogin) {
    // Compare with the slash: port 876 is the beginning of port 8765.
    if (written.startsWith(`${urlOf(facts)}/`)) return [];
    // The file names another proxy, so override its base URL, again with a token if that URL has one.
    const url = urlOf(facts);
    const moved = written.includes('/t/') ? withPathToken(url, facts.localToken) : url;
    return ['-c', `model_providers.svc.base_url=${tomlString(`${moved}/v1`)}`];
  }
  const pairs = [
    `name=${tomlString(CODEX_NAME)}`,
    `base_url=${tomlString(`${urlOf(facts)}/v1`)}`,
    ...(isLogin
      ? [
          'requires_openai_auth=true',
          `env_http_headers={ ${tomlString(TOKEN_HEADER)} = "SVC_LOCAL_PROXY_TOKEN" }`,
        ]
      : ['env_key="SVC_LOCAL_PROXY_TOKEN"']),
    'wire_api="responses"',
    'supports_websockets=false',
  ];
  return ['-c', `model_providers.svc={ ${pairs.join(', ')} }`];
}

/**
 * Returns the base URL that `svc connect codex` wrote into Codex's file for the provider svc; undefined without one.
 */
function writtenBase(environment: Environment): string | undefined {
  const text = readClientFile(environment, CODEX_FOLDER, 'config.toml');
  if (!text.includes(BLOCK_BEGIN)) return undefined;
  const { svc } = asRecord(parseToml(text)?.['model_providers']);
  const { base_url: base } = asRecord(svc);
  return typeof base === 'string' ? base : undefined;
}

type AuthMode = ReturnType<typeof codexAuthMode>;

/** The lowest minor version of Codex 0 found to support `openai_base_url`: 0.120.0 does, 0.113.0 does not. */
const BUILT_IN_SINCE = 120;

/** Says whether this Codex lets its built-in provider have another base URL. `version`: output of `codex --version`. */
export function isBuiltInConfigurable(version: string): boolean {
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)\.\d+/.exec(version) ?? [];
  return Number(major) > 0 || Number(minor) >= BUILT_IN_SINCE;
}

/** Deadline of `PROGRAM --version`, in ms. Codex answers in 50; a client that hangs must not keep the user waiting. */
const VERSION_MS = 5_000;

/** Returns the output of `PROGRAM --version`; '' without output in time. */
export async function versionOf(program: string, environment: Environment): Promise<string> {
  // On Windows npm installs clients as .cmd files, which only a shell can start.
  const shell = process.platform === 'win32';
  const options = { env: { ...environment }, timeout: VERSION_MS, shell };
  return new Promise((resolve) => {
    const child = execFile(program, ['--version'], options, (_, output) => resolve(output));
    child.stdin?.end();
  });
}
