import { isAbsolute, join } from 'node:path';
import type { Dialect } from '../../core/conversation/view.ts';
import { CliError } from '../cli-error.ts';
import { clientHome } from './client-home.ts';
import {
  type ClientFacts,
  entriesOf,
  jsonText,
  type OtherClient,
  requireProviders,
} from './other-client.ts';

/** The editors with an agent of their own that takes a base URL. `svc run` starts none of them. */

const ZED_KEY =
  'Zed asks for a key once, in Settings, AI, LLM Providers. Enter any text: the token is in the address.';

/**
 * Zed's built-in provider anthropic takes `api_url`; a provider of another API names its models. Zed keeps keys in
 * the keychain and not in settings.json, so the token is in the address (zed.dev/docs/ai/use-api-access and
 * zed-industries/zed#34602, 2026-11-24).
 */
export const zedClient: OtherClient = {
  name: 'zed',
  title: 'Zed',
  program: 'zed',
  install: 'see https://zed.dev/download',
  dialects: ['anthropic_messages', 'openai_responses', 'openai_chat_completions'],
  needsModel: ['openai_responses', 'openai_chat_completions'],
  print(facts) {
    const settings = { language_models: zedProviders(facts) };
    return {
      text: jsonText(settings),
      notes: ['Add this to ~/.config/zed/settings.json.', ZED_KEY],
    };
  },
  file: {
    path(environment) {
      const own = environment['XDG_CONFIG_HOME'] ?? '';
      const folder = isAbsolute(own) ? own : join(clientHome(environment), '.config');
      return join(folder, 'zed', 'settings.json');
    },
    settings: (facts) => entriesOf(['language_models'], zedProviders(facts)),
    asksToken: false,
    afterwards: ZED_KEY,
  },
};

function zedProviders({ urlWithToken, spoken, model }: ClientFacts): object {
  const providers = Object.fromEntries(
    spoken.flatMap((dialect): [string, object][] => {
      const form = COMPATIBLE.get(dialect);
      if (form === undefined) return [['anthropic', { api_url: urlWithToken }]];
      if (model === undefined) return [];
      const own = { name: model, max_tokens: WINDOW_TOKENS, ...form };
      const svc = { api_url: `${urlWithToken}/v1`, available_models: [own] };
      return [['openai_compatible', { svc }]];
    }),
  );
  requireProviders('zed', providers);
  return providers;
}

/** The APIs for which Zed has no provider whose models it knows, with what their models have besides. */
const COMPATIBLE: ReadonlyMap<Dialect, object> = new Map([
  ['openai_responses', { capabilities: { chat_completions: false } }],
  ['openai_chat_completions', {}],
]);

/** Both editors need the size of the window. A person corrects it for another model. */
const WINDOW_TOKENS = 200_000;
const ANSWER_TOKENS = 16_000;

/**
 * VS Code 1.121 and newer: an entry of the vendor customendpoint in chatLanguageModels.json, with a whole URL for
 * each model (microsoft/vscode#316916, read 2026-11-24).
 */
export const vscodeClient: OtherClient = {
  name: 'vscode',
  title: 'VS Code',
  program: 'code',
  install: 'see https://code.visualstudio.com',
  dialects: ['anthropic_messages', 'openai_responses', 'openai_chat_completions'],
  needsModel: ['anthropic_messages', 'openai_responses', 'openai_chat_completions'],
  print({ urlWithToken, spoken, model }) {
    const [endpoint] = spoken.map((dialect) => ENDPOINTS.get(dialect));
    if (model === undefined || endpoint === undefined) {
      throw new CliError(
        'VS Code needs the name of a model of your provider.',
        'svc print-config vscode --model MODEL',
      );
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
    const entry = { name: 'svc', vendor: 'customendpoint', apiKey: 'svc', apiType, models: [own] };
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
};

const ENDPOINTS: ReadonlyMap<Dialect, { readonly apiType: string; readonly path: string }> =
  new Map([
    ['anthropic_messages', { apiType: 'messages', path: '/v1/messages' }],
    ['openai_responses', { apiType: 'responses', path: '/v1/responses' }],
    ['openai_chat_completions', { apiType: 'chat-completions', path: '/v1/chat/completions' }],
  ]);

/** Programs that a person may name, and that cannot use a proxy on this machine by themselves. */
export const NOT_POSSIBLE: Readonly<Record<string, readonly [reason: string, instead: string]>> = {
  // ngrok.com/docs/gateway/examples/cursor-local-llm and forum.cursor.com/t/158805, 2026-11-24.
  cursor: [
    'Cursor sends model requests from its own servers, and they cannot reach a proxy on this machine.',
    'In the terminal of Cursor use svc run claude, or another client.',
  ],
  jetbrains: [
    'The JetBrains editors have no settings file for a base URL. Their agents are clients that run inside them.',
    'Connect the client that you use there: svc connect claude, or svc connect codex',
  ],
};
