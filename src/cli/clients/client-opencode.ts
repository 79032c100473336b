import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { Dialect } from '../../core/conversation/view.ts';
import { isRecord, parseJson } from '../../core/bytes/json-fields.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { CliError } from '../cli-error.ts';
import { clientHome } from './client-home.ts';
import {
  type ClientFacts,
  entriesOf,
  jsonText,
  type OtherClient,
  requireProviders,
} from './other-client.ts';

/**
 * opencode reads further settings from OPENCODE_CONFIG_CONTENT. Its own providers keep their models and
 * get another address. Chat Completions has no provider of its own there, so svc is one.
 */
export const opencodeClient: OtherClient = {
  name: 'opencode',
  title: 'opencode',
  program: 'opencode',
  install: 'npm install -g opencode-ai',
  dialects: ['anthropic_messages', 'openai_responses', 'openai_chat_completions'],
  needsModel: ['openai_chat_completions'],
  launch(facts) {
    const provider = providers(facts, `${facts.url}/v1`, KEY_VARIABLE);
    requireProviders('opencode', provider);
    return { args: [], variables: { [VARIABLE]: withProviders(facts.environment, provider) } };
  },
  print(facts) {
    const provider = providers(facts, `${facts.url}/v1`, KEY_VARIABLE);
    requireProviders('opencode', provider);
    return {
      text: jsonText({ provider }),
      notes: [
        'Put this into opencode.json of a project, or into ~/.config/opencode/opencode.json.',
        'Before you start opencode: export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"',
      ],
    };
  },
  file: {
    path: settingsFile,
    settings(facts) {
      // The key is in the address; the client insists on one of its own.
      const provider = providers(facts, `${facts.urlWithToken}/v1`, 'svc');
      requireProviders('opencode', provider);
      return entriesOf(['provider'], provider);
    },
    asksToken: false,
  },
};

const VARIABLE = 'OPENCODE_CONFIG_CONTENT';
const KEY_VARIABLE = '{env:SVC_LOCAL_PROXY_TOKEN}';

const BUILT_IN: ReadonlyMap<Dialect, string> = new Map([
  ['anthropic_messages', 'anthropic'],
  ['openai_responses', 'openai'],
]);

function providers({ spoken, model }: ClientFacts, baseURL: string, apiKey: string) {
  const options = { baseURL, apiKey };
  return Object.fromEntries(
    spoken.flatMap((dialect): [string, object][] => {
      const builtIn = BUILT_IN.get(dialect);
      if (builtIn !== undefined) return [[builtIn, { options }]];
      if (model === undefined) return [];
      const models = { [model]: { name: model } };
      return [['svc', { npm: '@ai-sdk/openai-compatible', name: 'svc', options, models }]];
    }),
  );
}

/** A person may give settings in the variable too: theirs stay, but for the same providers. */
function withProviders(environment: Environment, provider: object): string {
  const text = environment[VARIABLE] ?? '';
  const own = text === '' ? {} : parseJson(text);
  if (!isRecord(own)) {
    throw new CliError(`${VARIABLE} is not a JSON object.`, `Correct it, or: unset ${VARIABLE}`);
  }
  const others = isRecord(own['provider']) ? own['provider'] : {};
  return JSON.stringify({ ...own, provider: { ...others, ...provider } });
}

function settingsFile(environment: Environment): string {
  const own = environment['XDG_CONFIG_HOME'] ?? '';
  const folder = isAbsolute(own) ? own : join(clientHome(environment), '.config');
  const withComments = join(folder, 'opencode', 'opencode.jsonc');
  return existsSync(withComments) ? withComments : join(folder, 'opencode', 'opencode.json');
}
