import type { Dialect } from '../../core/conversation/dialect.ts';
import { CliError } from '../cli-error.ts';
import type { OtherClient } from './other-client.ts';

/** Continue's `cn` reads models from a YAML file that the person names. The token stays in a variable. */
export const continueClient: OtherClient = {
  name: 'continue',
  title: 'Continue',
  program: 'cn',
  install: 'npm install -g @continuedev/cli',
  dialects: ['anthropic_messages', 'openai_chat_completions'],
  launch({ args }) {
    if (!args.some((arg) => arg === '--config' || arg.startsWith('--config='))) {
      throw new CliError(
        'Continue finds the proxy through a file alone.',
        'svc print-config continue --model MODEL > svc.yaml && svc run continue -- --config svc.yaml',
      );
    }
    return { args: [], variables: {} };
  },
  print({ url, spoken: [dialect], model }) {
    if (model === undefined) {
      throw new CliError(
        'Continue must be told the model of your provider.',
        'svc print-config continue --model MODEL',
      );
    }
    const text = [
      'name: svc',
      'version: 1.0.0',
      'schema: v1',
      'models:',
      `  - name: ${JSON.stringify(model)}`,
      `    provider: ${(dialect && PROVIDERS.get(dialect)) ?? 'openai'}`,
      `    model: ${JSON.stringify(model)}`,
      `    apiBase: ${url}/v1`,
      '    apiKey: ${{ secrets.SVC_LOCAL_PROXY_TOKEN }}',
      '    roles: [chat]',
    ].join('\n');
    return {
      text,
      notes: [
        'Save this as svc.yaml and start with: svc run continue -- --config svc.yaml',
        'Continue states no project folder: its memories lie in the space default.',
      ],
    };
  },
};

const PROVIDERS: ReadonlyMap<Dialect, string> = new Map([
  ['anthropic_messages', 'anthropic'],
  ['openai_chat_completions', 'openai'],
]);
