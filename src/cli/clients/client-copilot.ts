import type { Dialect } from '../../core/conversation/view.ts';
import { exportLine } from '../../core/foreign/shell-quote.ts';
import { CliError } from '../cli-error.ts';
import type { OtherClient } from './other-client.ts';

/** GitHub's Copilot CLI with a provider of one's own, which it takes from the environment alone. */
export const copilotClient: OtherClient = {
  name: 'copilot',
  title: 'Copilot CLI',
  program: 'copilot',
  install: 'npm install -g @github/copilot',
  dialects: ['anthropic_messages', 'openai_responses', 'openai_chat_completions'],
  file: 'Copilot CLI reads a provider only from environment variables.',
  launch({ url, localToken, spoken, model, environment }) {
    if (model === undefined && !environment['COPILOT_MODEL']) {
      throw new CliError(
        'Copilot CLI needs the name of a model of your provider.',
        'svc run copilot -- --model MODEL, or: export COPILOT_MODEL=MODEL',
      );
    }
    const key = { COPILOT_PROVIDER_API_KEY: localToken, ...OTHER_KEYS };
    return { args: [], variables: { ...variablesOf(url, spoken), ...key } };
  },
  print({ url, spoken, model }) {
    const variables = { ...variablesOf(url, spoken), ...(model && { COPILOT_MODEL: model }) };
    const lines = Object.entries({
      ...variables,
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
};

/** Each would take the token's place. */
const OTHER_KEYS = {
  COPILOT_PROVIDER_API_KEY_COMMAND: undefined,
  COPILOT_PROVIDER_BEARER_TOKEN: undefined,
};

const FORMS: ReadonlyMap<Dialect, Readonly<Record<string, string>>> = new Map([
  ['anthropic_messages', { COPILOT_PROVIDER_TYPE: 'anthropic' }],
  ['openai_responses', { COPILOT_PROVIDER_TYPE: 'openai', COPILOT_PROVIDER_WIRE_API: 'responses' }],
  [
    'openai_chat_completions',
    { COPILOT_PROVIDER_TYPE: 'openai', COPILOT_PROVIDER_WIRE_API: 'completions' },
  ],
]);

function variablesOf(url: string, [dialect]: readonly Dialect[]): Readonly<Record<string, string>> {
  const form = (dialect && FORMS.get(dialect)) ?? {};
  // Its OpenAI forms append to the base what follows /v1; the Anthropic one appends /v1 itself.
  const isOpenAi = form['COPILOT_PROVIDER_TYPE'] === 'openai';
  return { ...form, COPILOT_PROVIDER_BASE_URL: isOpenAi ? `${url}/v1` : url };
}
