import { refuse } from '../errors.ts';
import type { HeaderIndex } from './http-form.ts';

/**
 * The logins of subscriptions. svc never logs in, and never stores, refreshes or shares a login. It relays the official
 * client's own request, with exactly one credential, to the provider's host, or to a listener on this machine that the
 * user allows.
 */

/** The client whose login an upstream takes. */
export type Login = 'claude' | 'codex';

export interface LoginFacts {
  readonly login: Login;
  /**
   * The base URL of the provider that issued the login. The configuration accepts no other one except on this machine.
   */
  readonly baseUrl: string;
  /** The client that the login belongs to, as users know it. */
  readonly client: string;
  /** Matches the whole value of the client's `authorization` header. */
  readonly form: RegExp;
  /** Headers that the client sends together with the login. */
  readonly companions: readonly string[];
  /** A header, and the beginnings of its value, by which svc recognises the client. It refuses any other client. */
  readonly mark: { readonly header: string; readonly begins: readonly string[] };
}

// Matches a JWT, which has three base64url parts. That of a login has some 2,000 characters.
const JWT = /^Bearer eyJ[\w-]{8,8000}\.[\w-]{8,8000}\.[\w-]{8,8000}$/;

export const LOGINS: Readonly<Record<Login, LoginFacts>> = {
  claude: {
    login: 'claude',
    baseUrl: 'https://api.anthropic.com',
    client: 'Claude Code',
    form: /^Bearer sk-ant-oat[\w-]{8,500}$/,
    companions: [],
    mark: { header: 'user-agent', begins: ['claude-cli/', 'claude-code/'] },
  },
  codex: {
    login: 'codex',
    baseUrl: 'https://chatgpt.com/backend-api/codex',
    client: 'Codex',
    form: JWT,
    companions: ['chatgpt-account-id'],
    mark: { header: 'originator', begins: ['codex'] },
  },
};

/** Headers in which clients send a key. A request with a login must have none of them. */
const KEY_HEADERS = ['x-api-key', 'api-key', 'anthropic-api-key', 'openai-api-key'];

/** Throws ProxyError unless the request carries exactly the login that its upstream takes. */
export function checkLogin(headers: HeaderIndex, login: Login): void {
  const { form, companions, mark, client } = LOGINS[login];
  const [authorization = ''] = headers.get('authorization') ?? [];
  if (!form.test(authorization) || !companions.every((name) => headers.get(name)?.length === 1)) {
    refuse('LOGIN_MISSING', `This provider accepts only the login of ${client}.`);
  }
  if (KEY_HEADERS.some((name) => headers.has(name))) {
    refuse('LOGIN_AMBIGUOUS', 'The request has a login and a key.');
  }
  const [value = ''] = headers.get(mark.header) ?? [];
  if (!mark.begins.some((begin) => value.toLowerCase().startsWith(begin))) {
    refuse('LOGIN_CLIENT_REFUSED', `Only ${client} may use its login.`);
  }
}

/** Says whether the request has a login of any client. */
export function carriesLogin(headers: HeaderIndex): boolean {
  const [authorization = ''] = headers.get('authorization') ?? [];
  return Object.values(LOGINS).some(
    ({ form, companions }) =>
      form.test(authorization) && companions.every((name) => headers.has(name)),
  );
}
