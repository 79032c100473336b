import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readClientFile } from '../../adapters/foreign/client-files.ts';
import { isRecord, parseJson } from '../../core/bytes/json-fields.ts';
import type { Dialect } from '../../core/conversation/view.ts';
import type { JsonChange } from '../../core/foreign/client-change.ts';
import { exportLine, shellQuote } from '../../core/foreign/shell-quote.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { CliError } from '../cli-error.ts';
import { clientFolder, CONFIG_FOLDER } from './client-home.ts';
import { LOCAL_VARIABLE } from './client-variables.ts';

/**
 * The clients besides Claude Code and Codex, one row each: dialects, environment variables, the settings that a user
 * must insert, and the settings file. `core/request/clients.ts` says what a client's requests look like.
 */

export interface OtherClient {
  /** The name as users type it. */
  readonly name: string;
  readonly title: string;
  /** The program's name in the search path. */
  readonly program: string;
  /** The command that installs it. */
  readonly install: string;
  /** The dialects that the client can use through svc, best first. */
  readonly dialects: readonly [Dialect, ...Dialect[]];
  /**
   * Returns arguments and variables for `svc run`; missing for an editor. `svc run` also sets SVC_LOCAL_PROXY_TOKEN.
   * Throws CliError if the client cannot be started.
   */
  launch?(facts: OtherLaunchFacts): {
    readonly args: readonly string[];
    /** Variables that override the shell's; undefined removes one. */
    readonly variables: Environment;
  };
  /** Returns complete settings for `svc print-config`. They contain no token if the client can read a variable. */
  print(facts: ClientFacts): {
    readonly text: string;
    /** Where the user must put the text, and what else to do. */
    readonly notes: readonly string[];
  };
  /** Dialects for which the client's settings must name a model, so the user must give one. */
  readonly needsModel?: readonly Dialect[];
  /** For `svc connect`: the client's own file, or a sentence that says why svc does not change it. */
  readonly file: OtherFile | string;
}

export interface ClientFacts {
  /** The proxy's address without /v1. Its path names the client. */
  readonly url: string;
  /** The same address with a token for model routes in its path, for files in which the client can run no command. */
  readonly urlWithToken: string;
  readonly environment: Environment;
  /** The client's dialects for which a provider is configured that takes no client's login. There is at least one. */
  readonly spoken: readonly Dialect[];
  /** The model that the user named, without the prefix `svc/`. */
  readonly model: string | undefined;
}

interface OtherLaunchFacts extends ClientFacts {
  readonly localToken: string;
  readonly args: readonly string[];
  /** The folder of svc's scripts. */
  readonly scripts: string;
}

interface OtherFile {
  path(environment: Environment): string;
  /** A hint for the user if the file has a form that svc does not edit. */
  readonly otherForm?: string;
  settings(
    facts: ClientFacts & { readonly tokenCommand: string },
  ): readonly Omit<JsonChange, 'before'>[];
  /** True if the client runs the token command, which starts the proxy if none runs. */
  readonly asksToken: boolean;
  readonly afterwards?: string;
}

const ALL = ['anthropic_messages', 'openai_responses', 'openai_chat_completions'] as const;
const CHAT = 'openai_chat_completions';
const CONTINUE = {
  folder: { variable: 'CONTINUE_GLOBAL_DIR', name: '.continue' },
  file: 'config.yaml',
};
const CLINE_PROVIDER = 'openai-compatible';
const ZED_KEY =
  'Zed asks for a key once, in Settings, AI, LLM Providers. Enter any text: the token is in the address.';

export const OTHER_CLIENTS: readonly OtherClient[] = [
  /**
   * opencode reads more settings from OPENCODE_CONFIG_CONTENT. Its built-in providers `anthropic` and `openai` keep
   * their models and get another address. Neither uses Chat Completions, so svc is added as a provider for that API.
   */
  {
    name: 'opencode',
    title: 'opencode',
    program: 'opencode',
    install: 'npm install -g opencode-ai',
    dialects: ALL,
    needsModel: [CHAT],
    launch: (facts) => ({
      args: [],
      variables: { [OPENCODE_SETTINGS]: withOpencode(facts.environment, opencodeOf(facts)) },
    }),
    print: (facts) => ({
      text: jsonText({ provider: opencodeOf(facts) }),
      notes: [
        'Put this into opencode.json of a project, or into ~/.config/opencode/opencode.json.',
        `Before you start opencode: ${LOCAL_VARIABLE.instructions}`,
      ],
    }),
    file: {
      path(environment) {
        const folder = join(clientFolder(environment, CONFIG_FOLDER), 'opencode');
        const withComments = join(folder, 'opencode.jsonc');
        return existsSync(withComments) ? withComments : join(folder, 'opencode.json');
      },
      // The token is in the address, but the client requires a key too.
      settings: (facts) =>
        entriesOf(['provider'], opencodeOf({ ...facts, url: facts.urlWithToken }, 'svc')),
      asksToken: false,
    },
  },
  /**
   * pi reads providers from its models.json or from an extension. `svc run` gives pi svc's extension, so no file
   * changes. pi's built-in providers keep their models and get another address.
   */
  {
    name: 'pi',
    title: 'pi',
    program: 'pi',
    install: 'npm install -g @earendil-works/pi-coding-agent',
    dialects: ALL,
    needsModel: [CHAT],
    launch: (facts) => ({
      args: ['--extension', join(facts.scripts, 'pi-extension.mjs')],
      variables: { SVC_PI_PROVIDERS: JSON.stringify(piOf(facts, facts.localToken)) },
    }),
    print: (facts) => ({
      text: jsonText({ providers: piOf(facts, '$SVC_LOCAL_PROXY_TOKEN') }),
      notes: [
        'Add this to ~/.pi/agent/models.json.',
        `Before you start pi: ${LOCAL_VARIABLE.instructions}`,
      ],
    }),
    file: {
      path(environment) {
        const folder = { variable: 'PI_CODING_AGENT_DIR', name: join('.pi', 'agent') };
        return join(clientFolder(environment, folder), 'models.json');
      },
      settings: (facts) => entriesOf(['providers'], piOf(facts, `!${facts.tokenCommand}`)),
      asksToken: true,
    },
  },
  /** Qwen Code reads address and key from variables. The user chooses the model. */
  {
    name: 'qwen',
    title: 'Qwen Code',
    program: 'qwen',
    install: 'npm install -g @qwen-code/qwen-code',
    dialects: [CHAT, 'anthropic_messages', 'openai_responses'],
    launch({ url, localToken, spoken }) {
      const { kind, variables } = qwenOf(spoken, url, localToken);
      return { args: ['--auth-type', kind], variables };
    },
    print({ url, spoken }) {
      const { kind, variables } = qwenOf(spoken, url, '');
      const lines = Object.entries(variables).map(([name, value]) =>
        value === '' ? `export ${name}="$(svc config token)"` : exportLine(name, value, 'sh'),
      );
      return {
        text: lines.join('\n'),
        notes: [
          'Evaluate these lines in the shell that starts the client: eval "$(svc print-config qwen)"',
          `Then: qwen --auth-type ${kind} --model MODEL`,
        ],
      };
    },
    file: {
      path: (environment) =>
        join(clientFolder(environment, { variable: 'QWEN_HOME', name: '.qwen' }), 'settings.json'),
      settings({ urlWithToken, spoken }) {
        // The token is in the address, but the client requires a key too.
        const { kind, variables } = qwenOf(spoken, urlWithToken, 'svc');
        return entriesOf([], { env: variables, security: { auth: { selectedType: kind } } });
      },
      asksToken: false,
    },
  },
  /** GitHub's Copilot CLI reads a user's own provider only from variables. */
  {
    name: 'copilot',
    title: 'Copilot CLI',
    program: 'copilot',
    install: 'npm install -g @github/copilot',
    dialects: ALL,
    file: 'Copilot CLI reads a provider only from environment variables.',
    launch({ url, localToken, spoken, model, environment }) {
      if (model === undefined && !environment['COPILOT_MODEL']) {
        throw needsModel(
          'Copilot CLI',
          'svc run copilot -- --model MODEL, or: export COPILOT_MODEL=MODEL',
        );
      }
      const keys = {
        COPILOT_PROVIDER_API_KEY: localToken,
        // The client would use either of these two instead of the token.
        COPILOT_PROVIDER_API_KEY_COMMAND: undefined,
        COPILOT_PROVIDER_BEARER_TOKEN: undefined,
      };
      return { args: [], variables: { ...copilotOf(url, spoken), ...keys } };
    },
    print({ url, spoken, model }) {
      const lines = Object.entries({
        ...copilotOf(url, spoken),
        ...(model && { COPILOT_MODEL: model }),
        COPILOT_PROVIDER_API_KEY_COMMAND: 'svc config token --start',
      }).map(([name, value]) => exportLine(name, value, 'sh'));
      return {
        text: lines.join('\n'),
        notes: [
          'Evaluate these lines in the shell that starts the client: eval "$(svc print-config copilot)"',
          'Copilot CLI also needs a model: COPILOT_MODEL or --model.',
        ],
      };
    },
  },
  /**
   * Cline's command line reads a base URL only from its own file, and only for Chat Completions. So the user must once
   * run the command that `svc print-config cline` prints, before `svc run cline`.
   */
  {
    name: 'cline',
    title: 'Cline',
    program: 'cline',
    install: 'npm install -g cline',
    dialects: [CHAT],
    needsModel: [CHAT],
    file: 'Cline rewrites its own file at every start, so svc could not restore its bytes.',
    launch({ url, environment }) {
      const folder = { variable: '', name: join('.cline', 'data', 'settings') };
      if (!readClientFile(environment, folder, 'providers.json').includes(`${url}/`)) {
        throw new CliError(
          'Cline reads the address of the proxy only from its own file, and that file does not name the proxy.',
          'Run once: eval "$(svc print-config cline --model MODEL)"',
        );
      }
      return { args: ['-P', CLINE_PROVIDER], variables: {} };
    },
    print({ urlWithToken, model }) {
      if (model === undefined) throw needsModel('Cline', 'svc print-config cline --model MODEL');
      const name = shellQuote(model, 'sh');
      return {
        // The token is in the address, but the client requires a key too.
        text: `cline auth -p ${CLINE_PROVIDER} -k svc -b ${urlWithToken}/v1 -m ${name}`,
        notes: [`Run this once, then: cline -P ${CLINE_PROVIDER}, or svc run cline`],
      };
    },
  },
  /**
   * Continue's `cn` reads models from a YAML file: the one after `--config`, or the one in its own folder. With the
   * printed settings it reads the token from a variable.
   */
  {
    name: 'continue',
    title: 'Continue',
    program: 'cn',
    install: 'npm install -g @continuedev/cli',
    dialects: ['anthropic_messages', CHAT],
    needsModel: ['anthropic_messages', CHAT],
    launch({ args, url, environment }) {
      const isNamed = args.some((arg) => arg === '--config' || arg.startsWith('--config='));
      const { folder, file } = CONTINUE;
      if (!isNamed && !readClientFile(environment, folder, file).includes(`${url}/`)) {
        throw new CliError(
          'Continue reads the address of the proxy only from a file.',
          'svc print-config continue --model MODEL > svc.yaml && svc run continue -- --config svc.yaml',
        );
      }
      return { args: [], variables: {} };
    },
    file: {
      path: (environment) => join(clientFolder(environment, CONTINUE.folder), CONTINUE.file),
      otherForm:
        'Copy your models and the output of this command into one file: svc print-config continue',
      // The file is YAML, but a JSON object is valid YAML.
      settings({ urlWithToken, spoken, model }) {
        const own = {
          ...continueModel(spoken, model),
          apiBase: `${urlWithToken}/v1`,
          // The token is in the address, but the client requires a key too.
          apiKey: 'svc',
          roles: ['chat'],
        };
        return entriesOf([], { name: 'svc', version: '1.0.0', schema: 'v1', models: [own] });
      },
      asksToken: false,
    },
    print({ url, spoken, model: named }) {
      const { provider, model } = continueModel(spoken, named);
      const text = [
        'name: svc',
        'version: 1.0.0',
        'schema: v1',
        'models:',
        `  - name: ${JSON.stringify(model)}`,
        `    provider: ${provider}`,
        `    model: ${JSON.stringify(model)}`,
        `    apiBase: ${url}/v1`,
        '    apiKey: ${{ secrets.SVC_LOCAL_PROXY_TOKEN }}',
        '    roles: [chat]',
      ].join('\n');
      return {
        text,
        notes: [
          'Save this as svc.yaml and start with: svc run continue -- --config svc.yaml',
          'Continue states no project folder, so its memories belong to the space default.',
        ],
      };
    },
  },
  /**
   * Zed's provider `anthropic` has the setting `api_url`; a provider of another API must list its models. Zed stores
   * keys in the keychain and not in settings.json, so the token is in the address (zed.dev/docs/ai/use-api-access and
   * zed-industries/zed#34602, 2026-11-24).
   */
  {
    name: 'zed',
    title: 'Zed',
    program: 'zed',
    install: 'see https://zed.dev/download',
    dialects: ALL,
    needsModel: ['openai_responses', CHAT],
    print: (facts) => ({
      text: jsonText({ language_models: zedOf(facts) }),
      notes: ['Add this to ~/.config/zed/settings.json.', ZED_KEY],
    }),
    file: {
      path: (environment) => join(clientFolder(environment, CONFIG_FOLDER), 'zed', 'settings.json'),
      settings: (facts) => entriesOf(['language_models'], zedOf(facts)),
      asksToken: false,
      afterwards: ZED_KEY,
    },
  },
  /**
   * VS Code 1.121 and newer reads providers of the vendor `customendpoint` from chatLanguageModels.json, with a
   * complete URL for each model (microsoft/vscode#316916, read 2026-11-24).
   */
  {
    name: 'vscode',
    title: 'VS Code',
    program: 'code',
    install: 'see https://code.visualstudio.com',
    dialects: ALL,
    needsModel: ALL,
    print({ urlWithToken, spoken, model }) {
      const [endpoint] = spoken.map((dialect) => VSCODE_ENDPOINTS.get(dialect));
      if (model === undefined || endpoint === undefined) {
        throw needsModel('VS Code', 'svc print-config vscode --model MODEL');
      }
      const { apiType, path } = endpoint;
      const own = {
        id: model,
        name: `${model} (svc)`,
        url: `${urlWithToken}${path}`,
        toolCalling: true,
        vision: true,
        maxInputTokens: WINDOW_TOKENS - ANSWER_TOKENS,
        maxOutputTokens: ANSWER_TOKENS,
      };
      const entry = {
        name: 'svc',
        vendor: 'customendpoint',
        apiKey: 'svc',
        apiType,
        models: [own],
      };
      return {
        text: jsonText([entry]),
        notes: [
          'In VS Code run "Chat: Manage Language Models", then "Add Models" and "Custom Endpoint".',
          'Put this entry into the list in chatLanguageModels.json, which VS Code then opens.',
          'The token is in the address, and opens model routes only.',
        ],
      };
    },
    file: 'VS Code writes the list of its models itself, so svc only prints the entry.',
  },
];

/** Programs that svc cannot connect, with the reason and what to use instead. */
export const NOT_POSSIBLE: Readonly<Record<string, readonly [reason: string, instead: string]>> = {
  // Sources: ngrok.com/docs/gateway/examples/cursor-local-llm and forum.cursor.com/t/158805, 2026-11-24.
  cursor: [
    'Cursor sends model requests from its own servers, and they cannot reach a proxy on this machine.',
    'In the terminal of Cursor use svc run claude, or another client.',
  ],
  jetbrains: [
    'The JetBrains editors have no settings file for a base URL. Their agents are clients that run inside them.',
    'Connect the client that you use there: svc connect claude, or svc connect codex',
  ],
};

/**
 * Returns the model after `-m`, `--model` or `--model=`, without the prefix `svc/`, which names svc's provider;
 * undefined if the arguments name no model in these forms.
 */
export function modelIn(args: readonly string[]): string | undefined {
  const at = args.findIndex((arg) => arg === '-m' || arg === '--model');
  const joined = args.find((arg) => arg.startsWith('--model='))?.slice('--model='.length);
  const model = joined ?? (at === -1 ? undefined : args[at + 1]);
  return model?.replace(/^svc\//, '');
}

function needsModel(title: string, hint: string): CliError {
  return new CliError(`${title} needs the name of a model of your provider.`, hint);
}

function jsonText(value: unknown): string {
  return JSON.stringify(value, undefined, 2);
}

/** Returns one change for each innermost value, so that undoing keeps what the user added to the same object. */
function entriesOf(path: readonly string[], value: unknown): readonly Omit<JsonChange, 'before'>[] {
  if (!isRecord(value)) return [{ path, value }];
  return Object.entries(value).flatMap(([key, inner]) => entriesOf([...path, key], inner));
}

/**
 * Returns the providers by name. A dialect that needs a model's name gets none if the user named no model. Throws
 * CliError if no provider is left.
 */
function providersOf(
  client: string,
  { spoken }: ClientFacts,
  providerOf: (dialect: Dialect) => readonly [name: string, settings: object] | undefined,
): Readonly<Record<string, object>> {
  const providers = spoken.map(providerOf).filter((one) => one !== undefined);
  if (providers.length > 0) return Object.fromEntries(providers);
  // The client knows no models for any of these dialects, so the user must name one.
  const hint = `svc print-config ${client} --model MODEL, or with svc run: --model svc/MODEL`;
  throw needsModel(client, hint);
}

/** The names of the built-in providers of opencode, pi and Continue that get the address of svc, by their dialect. */
const BUILT_IN: ReadonlyMap<Dialect, string> = new Map([
  ['anthropic_messages', 'anthropic'],
  ['openai_responses', 'openai'],
]);

const OPENCODE_SETTINGS = 'OPENCODE_CONFIG_CONTENT';

function opencodeOf(facts: ClientFacts, apiKey = '{env:SVC_LOCAL_PROXY_TOKEN}') {
  const { url, model } = facts;
  const options = { baseURL: `${url}/v1`, apiKey };
  return providersOf('opencode', facts, (dialect) => {
    const builtIn = BUILT_IN.get(dialect);
    if (builtIn !== undefined) return [builtIn, { options }];
    if (model === undefined) return undefined;
    const models = { [model]: { name: model } };
    return ['svc', { npm: '@ai-sdk/openai-compatible', name: 'svc', options, models }];
  });
}

/**
 * Returns the value of OPENCODE_SETTINGS with these providers, which replace the user's of the same names. The user's
 * other settings stay. Throws CliError if the value is no JSON object.
 */
function withOpencode(environment: Environment, provider: object): string {
  const text = environment[OPENCODE_SETTINGS] ?? '';
  const own = text === '' ? {} : parseJson(text);
  if (!isRecord(own)) {
    throw new CliError(
      `${OPENCODE_SETTINGS} is not a JSON object.`,
      `Correct it, or: unset ${OPENCODE_SETTINGS}`,
    );
  }
  const others = isRecord(own['provider']) ? own['provider'] : {};
  return JSON.stringify({ ...own, provider: { ...others, ...provider } });
}

/**
 * Returns the settings of pi's providers. pi takes a key as text, as the name of a variable (`$NAME`), or as a command
 * that prints it (`!command`).
 */
function piOf(facts: ClientFacts, apiKey: string) {
  const { url, model } = facts;
  return providersOf('pi', facts, (dialect) => {
    const builtIn = BUILT_IN.get(dialect);
    // pi's provider `anthropic` adds /v1 to the address itself.
    const baseUrl = builtIn === 'anthropic' ? url : `${url}/v1`;
    if (builtIn !== undefined) return [builtIn, { baseUrl, apiKey }];
    if (model === undefined) return undefined;
    return ['svc', { baseUrl, api: 'openai-completions', apiKey, models: [{ id: model }] }];
  });
}

/** Returns the kind of provider, as `--auth-type` and the settings name it, and the variables for it. */
function qwenOf([dialect]: readonly Dialect[], url: string, key: string) {
  const kind = (dialect && QWEN_KINDS.get(dialect)) ?? 'openai';
  const variables: Readonly<Record<string, string>> =
    kind === 'anthropic'
      ? { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key }
      : { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key };
  return { kind, variables };
}

const QWEN_KINDS: ReadonlyMap<Dialect, string> = new Map([
  ['openai_responses', 'openai-responses'],
  ['anthropic_messages', 'anthropic'],
]);

function copilotOf(url: string, [dialect]: readonly Dialect[]): Readonly<Record<string, string>> {
  const wire = dialect && COPILOT_WIRES.get(dialect);
  // Copilot CLI adds /v1 itself only for Anthropic.
  return wire === undefined
    ? { COPILOT_PROVIDER_TYPE: 'anthropic', COPILOT_PROVIDER_BASE_URL: url }
    : {
        COPILOT_PROVIDER_TYPE: 'openai',
        COPILOT_PROVIDER_WIRE_API: wire,
        COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      };
}

const COPILOT_WIRES: ReadonlyMap<Dialect, string> = new Map([
  ['openai_responses', 'responses'],
  ['openai_chat_completions', 'completions'],
]);

function continueModel([dialect]: readonly Dialect[], model: string | undefined) {
  if (model === undefined) throw needsModel('Continue', 'svc print-config continue --model MODEL');
  const provider = dialect && BUILT_IN.get(dialect);
  return { name: model, provider: provider ?? 'openai', model };
}

/**
 * Token limits of a model: Zed requires the first, VS Code both. The user must correct them for other models.
 */
const WINDOW_TOKENS = 200_000;
const ANSWER_TOKENS = 16_000;

function zedOf(facts: ClientFacts) {
  const { urlWithToken, model } = facts;
  return providersOf('zed', facts, (dialect) => {
    const form = ZED_MODELS.get(dialect);
    if (form === undefined) return ['anthropic', { api_url: urlWithToken }];
    if (model === undefined) return undefined;
    const own = { name: model, max_tokens: WINDOW_TOKENS, ...form };
    return [
      'openai_compatible',
      { svc: { api_url: `${urlWithToken}/v1`, available_models: [own] } },
    ];
  });
}

/**
 * The dialects for which Zed knows no models, each with what a model's entry in Zed's list needs besides the model's
 * name and its token limit.
 */
const ZED_MODELS: ReadonlyMap<Dialect, object> = new Map([
  ['openai_responses', { capabilities: { chat_completions: false } }],
  ['openai_chat_completions', {}],
]);

const VSCODE_ENDPOINTS: ReadonlyMap<Dialect, { readonly apiType: string; readonly path: string }> =
  new Map([
    ['anthropic_messages', { apiType: 'messages', path: '/v1/messages' }],
    ['openai_responses', { apiType: 'responses', path: '/v1/responses' }],
    ['openai_chat_completions', { apiType: 'chat-completions', path: '/v1/chat/completions' }],
  ]);
