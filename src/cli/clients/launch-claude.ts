import { hasLogin } from '../../adapters/foreign/client-logins.ts';
import { readClientFile } from '../../adapters/foreign/client-files.ts';
import { TOKEN_HEADER } from '../../core/http/local-token.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { urlOf } from '../addresses.ts';
import { claudeVariables, loopbackVariables, toolSearchVariables } from './client-variables.ts';
import { type LaunchedClient, type LaunchFacts, takesLogin } from './launch.ts';

export const CLAUDE: LaunchedClient = {
  program: 'claude',
  install: 'npm install -g @anthropic-ai/claude-code',
  dialects: ['anthropic_messages'],
  launch: (facts) => (takesLogin(facts.upstream) ? withLogin(facts) : withKey(facts)),
};

function withKey({ host, port, localToken, environment, upstream }: LaunchFacts) {
  const access = { host, port, localToken };
  return {
    args: [],
    environment: {
      ...environment,
      ...Object.fromEntries(claudeVariables(access, { environment, authToken: true })),
      ...Object.fromEntries(toolSearchVariables(upstream, environment)),
      // Beside a token the client would send it along, and ask first whether it may. The provider's key
      // is svc's business.
      ANTHROPIC_API_KEY: undefined,
      CLAUDE_CODE_OAUTH_TOKEN: undefined,
    },
    notes: hasLogin(environment, 'claude') ? [keyPays('Claude Code', 'claude')] : [],
  };
}

/** The client keeps its login and sends it as always; svc gets its own token in a header beside it. */
function withLogin({ host, port, localToken, environment, upstream }: LaunchFacts) {
  return {
    args: [],
    environment: {
      ...environment,
      ANTHROPIC_BASE_URL: urlOf({ host, port }),
      ANTHROPIC_CUSTOM_HEADERS: withHeader(environment, `${TOKEN_HEADER}: ${localToken}`),
      CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
      ...Object.fromEntries(loopbackVariables(host, environment)),
      ...Object.fromEntries(toolSearchVariables(upstream, environment)),
      // Either of them would take the login's place.
      ANTHROPIC_API_KEY: undefined,
      ANTHROPIC_AUTH_TOKEN: undefined,
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
}

/** Headers are lines in this variable. */
function withHeader(environment: Environment, line: string): string {
  const own = (environment['ANTHROPIC_CUSTOM_HEADERS'] ?? '')
    .split('\n')
    .filter((one) => one.trim() !== '' && !one.toLowerCase().startsWith(`${TOKEN_HEADER}:`));
  return [...own, line].join('\n');
}

function hasKeySettings(environment: Environment): boolean {
  const folder = { variable: 'CLAUDE_CONFIG_DIR', name: '.claude' };
  const text = readClientFile(environment, folder, 'settings.json');
  return text.includes('"apiKeyHelper"') && text.includes('config token');
}

/** Login and key together: the person must know which of them pays. */
export function keyPays(client: string, login: string): string {
  return `${client} has a subscription login, but svc has a provider key, so the provider bills the key per token. To use the login instead: svc setup --login ${login}`;
}
