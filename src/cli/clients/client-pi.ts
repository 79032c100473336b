import { isAbsolute, join } from 'node:path';
import type { Dialect } from '../../core/conversation/view.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { clientHome } from './client-home.ts';
import {
  type ClientFacts,
  entriesOf,
  jsonText,
  type OtherClient,
  requireProviders,
} from './other-client.ts';

/**
 * pi takes providers from its models.json or from an extension. `svc run` gives it svc's extension, so
 * no file changes. Its own providers keep their models and get another address.
 */
export const piClient: OtherClient = {
  name: 'pi',
  title: 'pi',
  program: 'pi',
  install: 'npm install -g @mariozechner/pi-coding-agent',
  dialects: ['anthropic_messages', 'openai_responses', 'openai_chat_completions'],
  needsModel: ['openai_chat_completions'],
  launch(facts) {
    const provider = providers(facts, KEY_VARIABLE);
    requireProviders('pi', provider);
    return {
      args: ['--extension', join(facts.scripts, 'pi-extension.mjs')],
      variables: { SVC_PI_PROVIDERS: JSON.stringify(provider) },
    };
  },
  print(facts) {
    const provider = providers(facts, KEY_VARIABLE);
    requireProviders('pi', provider);
    return {
      text: jsonText({ providers: provider }),
      notes: [
        'Add this to ~/.pi/agent/models.json.',
        'Before you start pi: export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"',
      ],
    };
  },
  file: {
    path(environment: Environment) {
      const own = environment['PI_CODING_AGENT_DIR'] ?? '';
      const folder = isAbsolute(own) ? own : join(clientHome(environment), '.pi', 'agent');
      return join(folder, 'models.json');
    },
    settings(facts) {
      const provider = providers(facts, `!${facts.tokenCommand}`);
      requireProviders('pi', provider);
      return entriesOf(['providers'], provider);
    },
    asksToken: true,
  },
};

/** pi takes the name of a variable for its value. */
const KEY_VARIABLE = 'SVC_LOCAL_PROXY_TOKEN';

interface BuiltIn {
  readonly provider: string;
  /** Behind the proxy's address. */
  readonly path: string;
}

const BUILT_IN: ReadonlyMap<Dialect, BuiltIn> = new Map([
  ['anthropic_messages', { provider: 'anthropic', path: '' }],
  ['openai_responses', { provider: 'openai', path: '/v1' }],
]);

function providers({ url, spoken, model }: ClientFacts, apiKey: string) {
  return Object.fromEntries(
    spoken.flatMap((dialect): [string, object][] => {
      const builtIn = BUILT_IN.get(dialect);
      if (builtIn !== undefined) {
        return [[builtIn.provider, { baseUrl: `${url}${builtIn.path}`, apiKey }]];
      }
      if (model === undefined) return [];
      const models = [{ id: model }];
      return [['svc', { baseUrl: `${url}/v1`, api: 'openai-completions', apiKey, models }]];
    }),
  );
}
