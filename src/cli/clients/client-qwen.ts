import { isAbsolute, join } from 'node:path';
import type { Dialect } from '../../core/conversation/view.ts';
import { exportLine } from '../../core/foreign/shell-quote.ts';
import { clientHome } from './client-home.ts';
import { entriesOf, type OtherClient } from './other-client.ts';

/** Qwen Code takes address, key and kind of provider from the environment; the model is the person's. */
export const qwenClient: OtherClient = {
  name: 'qwen',
  title: 'Qwen Code',
  program: 'qwen',
  install: 'npm install -g @qwen-code/qwen-code',
  dialects: ['openai_chat_completions', 'anthropic_messages', 'openai_responses'],
  launch({ url, localToken, spoken }) {
    const { kind, variables } = formOf(spoken);
    return { args: ['--auth-type', kind], variables: variables(url, localToken) };
  },
  print({ url, spoken }) {
    const { kind, variables } = formOf(spoken);
    const lines = Object.entries(variables(url, '')).map(([name, value]) =>
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
    path(environment) {
      const own = environment['QWEN_HOME'] ?? '';
      const folder = isAbsolute(own) ? own : join(clientHome(environment), '.qwen');
      return join(folder, 'settings.json');
    },
    settings({ urlWithToken, spoken }) {
      const { kind, variables } = formOf(spoken);
      const security = { auth: { selectedType: kind } };
      // The key is in the address; the client insists on one of its own.
      return entriesOf([], { env: variables(urlWithToken, 'svc'), security });
    },
    asksToken: false,
  },
};

interface Form {
  /** As `--auth-type` and the settings name it. */
  readonly kind: string;
  readonly variables: (url: string, key: string) => Readonly<Record<string, string>>;
}

const openAiVariables = (url: string, key: string) => ({
  OPENAI_BASE_URL: `${url}/v1`,
  OPENAI_API_KEY: key,
});

const CHAT: Form = { kind: 'openai', variables: openAiVariables };
const FORMS: ReadonlyMap<Dialect, Form> = new Map([
  ['openai_chat_completions', CHAT],
  ['openai_responses', { kind: 'openai-responses', variables: openAiVariables }],
  [
    'anthropic_messages',
    {
      kind: 'anthropic',
      variables: (url: string, key: string) => ({
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_API_KEY: key,
      }),
    },
  ],
]);

function formOf([dialect]: readonly Dialect[]): Form {
  return (dialect && FORMS.get(dialect)) ?? CHAT;
}
