import type { Dialect } from '../../core/conversation/view.ts';
import { isAbsolute, join } from 'node:path';
import { readClientFile } from '../../adapters/foreign/client-files.ts';
import { CliError } from '../cli-error.ts';
import { clientHome } from './client-home.ts';
import { entriesOf, type OtherClient } from './other-client.ts';

/** Continue's `cn` reads models from a YAML file that the person names. The token stays in a variable. */
export const continueClient: OtherClient = {
  name: 'continue',
  title: 'Continue',
  program: 'cn',
  install: 'npm install -g @continuedev/cli',
  dialects: ['anthropic_messages', 'openai_chat_completions'],
  needsModel: ['anthropic_messages', 'openai_chat_completions'],
  launch({ args, url, environment }) {
    const isNamed = args.some((arg) => arg === '--config' || arg.startsWith('--config='));
    if (!isNamed && !readClientFile(environment, FOLDER, FILE).includes(`${url}/`)) {
      throw new CliError(
        'Continue reads the address of the proxy only from a file.',
        'svc print-config continue --model MODEL > svc.yaml && svc run continue -- --config svc.yaml',
      );
    }
    return { args: [], variables: {} };
  },
  file: {
    path(environment) {
      const own = environment[FOLDER.variable] ?? '';
      return join(isAbsolute(own) ? own : join(clientHome(environment), FOLDER.name), FILE);
    },
    otherForm:
      'Copy your models and the output of this command into one file: svc print-config continue',
    // A JSON object is YAML too.
    settings({ urlWithToken, spoken, model }) {
      const own = {
        name: requireModel(model),
        provider: providerFor(spoken),
        model,
        apiBase: `${urlWithToken}/v1`,
        // The key is in the address; the client insists on one of its own.
        apiKey: 'svc',
        roles: ['chat'],
      };
      return entriesOf([], { name: 'svc', version: '1.0.0', schema: 'v1', models: [own] });
    },
    asksToken: false,
  },
  print({ url, spoken, model: named }) {
    const model = requireModel(named);
    const text = [
      'name: svc',
      'version: 1.0.0',
      'schema: v1',
      'models:',
      `  - name: ${JSON.stringify(model)}`,
      `    provider: ${providerFor(spoken)}`,
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
};

const FOLDER = { variable: 'CONTINUE_GLOBAL_DIR', name: '.continue' };
const FILE = 'config.yaml';

function requireModel(model: string | undefined): string {
  if (model !== undefined) return model;
  throw new CliError(
    'Continue needs the name of a model of your provider.',
    'svc print-config continue --model MODEL',
  );
}

function providerFor([dialect]: readonly Dialect[]): string {
  return (dialect && PROVIDERS.get(dialect)) ?? 'openai';
}

const PROVIDERS: ReadonlyMap<Dialect, string> = new Map([
  ['anthropic_messages', 'anthropic'],
  ['openai_chat_completions', 'openai'],
]);
