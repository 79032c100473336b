import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ProxyError } from '../../src/core/errors.ts';
import { admit, type GatePolicy } from '../../src/core/http/gate.ts';
import { forwardHeaders, headerOf } from '../../src/core/http/header-rules.ts';
import { pathTokenOf, splitTarget } from '../../src/core/http/local-token.ts';
import { parseConfig } from '../../src/core/settings/config-schema.ts';
import { LOCAL_TOKEN, validConfig } from '../support/config.ts';

const CLAUDE = `Bearer sk-ant-oat01-${'a'.repeat(90)}`;
const JWT = `Bearer eyJ${'h'.repeat(40)}.${'p'.repeat(300)}.${'s'.repeat(80)}`;
const PATH_TOKEN = pathTokenOf(LOCAL_TOKEN);
const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest();

const POLICY: GatePolicy = {
  port: 8765,
  tokenDigests: [digestOf(LOCAL_TOKEN)],
  pathTokenDigests: [digestOf(PATH_TOKEN)],
  loginOf: (route) => {
    if (route.kind !== 'model' && route.kind !== 'relay') return undefined;
    return route.dialect === 'anthropic_messages' ? 'claude' : 'codex';
  },
  relayPaths: [],
  bodyBytesMax: 1000,
  zstdBytesMax: 1000,
};
/** svc has a key for every provider. */
const KEYED: GatePolicy = { ...POLICY, loginOf: () => undefined };

const AGENTS = {
  claude: { authorization: CLAUDE, 'user-agent': 'claude-cli/2.1.330 (external, cli)' },
  codex: { authorization: JWT, originator: 'codex_exec', 'chatgpt-account-id': 'acc-1' },
};
const PATHS = { claude: '/v1/messages?beta=true', codex: '/v1/responses' };

interface Asked {
  readonly target: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly more?: readonly string[];
}

function ask({ target, method = 'POST', headers = {}, more = [] }: Asked, policy = POLICY) {
  const all = { host: '127.0.0.1:8765', 'content-type': 'application/json', ...headers };
  const raw = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [name, value],
  );
  try {
    const head = { method, target, httpVersion: '1.1', headers: [...raw, ...more] };
    return admit(head, policy).target;
  } catch (error) {
    if (error instanceof ProxyError) return `${error.status} ${error.code}`;
    throw error;
  }
}

describe.each(['claude', 'codex'] as const)('R46: the login of %s', (login) => {
  const path = PATHS[login];
  const agent = AGENTS[login];
  const inPath = `/t/${PATH_TOKEN}${path}`;

  test('passes with the local token in the header or in the path, which loses the token', () => {
    expect(ask({ target: inPath, headers: agent })).toBe(path);
    const withHeader = { ...agent, 'x-svc-local-token': LOCAL_TOKEN };
    expect(ask({ target: path, headers: withHeader })).toBe(path);
    // A client with the settings of svc connect, started by svc run.
    expect(ask({ target: inPath, headers: withHeader })).toBe(path);
  });

  test.each([
    ['no local token', path, {}, '401 LOGIN_REFUSED'],
    ['a wrong token in the path', `/t/svc_path_wrong${path}`, {}, '401 LOCAL_TOKEN_INVALID'],
    ['the local token in the path', `/t/${LOCAL_TOKEN}${path}`, {}, '401 LOCAL_TOKEN_INVALID'],
    ['an empty token in the path', `/t/${path}`, {}, '401 LOCAL_TOKEN_INVALID'],
    ['a wrong token header', path, { 'x-svc-local-token': 'x' }, '401 LOCAL_TOKEN_INVALID'],
    [
      'the path token in the header',
      path,
      { 'x-svc-local-token': PATH_TOKEN },
      '401 LOCAL_TOKEN_INVALID',
    ],
    [
      'a wrong token header beside the path',
      inPath,
      { 'x-svc-local-token': 'x' },
      '400 REQUEST_MALFORMED',
    ],
    [
      'a wrong path beside the token header',
      `/t/svc_path_wrong${path}`,
      { 'x-svc-local-token': LOCAL_TOKEN },
      '400 REQUEST_MALFORMED',
    ],
    [
      'the local token as a key beside it',
      inPath,
      { 'x-api-key': LOCAL_TOKEN },
      '400 REQUEST_MALFORMED',
    ],
    ['no login', inPath, { authorization: undefined }, '401 LOGIN_MISSING'],
    ['a key in its place', inPath, { authorization: 'Bearer sk-proj-abc' }, '401 LOGIN_MISSING'],
    ['a key beside it', inPath, { 'x-api-key': 'sk-ant-api03-abc' }, '401 LOGIN_AMBIGUOUS'],
    ['another key beside it', inPath, { 'api-key': 'abc' }, '401 LOGIN_AMBIGUOUS'],
    [
      'another program',
      inPath,
      { 'user-agent': 'curl/8', originator: 'opencode' },
      '403 LOGIN_CLIENT_REFUSED',
    ],
  ])('is refused with %s', (...[, target, headers, verdict]) => {
    expect(ask({ target, headers: { ...agent, ...headers } })).toBe(verdict);
  });

  test('twice is refused', () => {
    const more = ['Authorization', agent.authorization];
    expect(ask({ target: inPath, headers: agent, more })).toBe('400 REQUEST_MALFORMED');
  });

  test('does not pass where svc has a key, and a key does not pass for it', () => {
    expect(ask({ target: inPath, headers: agent }, KEYED)).toBe('401 LOGIN_REFUSED');
    expect(ask({ target: path, headers: agent }, KEYED)).toBe('401 LOGIN_REFUSED');
    const local = { authorization: `Bearer ${LOCAL_TOKEN}` };
    expect(ask({ target: path, headers: local })).toBe('401 LOGIN_MISSING');
    // A client that keeps its own settings presents a key of its own, which svc drops.
    const ownKey = { authorization: 'Bearer sk-proj-own' };
    expect(ask({ target: inPath, headers: ownKey }, KEYED)).toBe(path);
  });

  test('crosses verbatim, alone, and in its place', () => {
    const client = ['x-first', '1', 'Authorization', agent.authorization, 'X-Last', '2'];
    const rules = { auth: 'client', providerKey: '', headers: {} } as const;
    const sent = forwardHeaders([...client, 'x-svc-local-token', LOCAL_TOKEN], rules);
    expect(sent).toEqual([...client, 'accept-encoding', 'identity']);
    expect(headerOf(sent, 'x-api-key')).toBeUndefined();
  });
});

test('R46: the path token opens model routes only', () => {
  const prefix = `/t/${PATH_TOKEN}`;
  expect(ask({ target: `${prefix}/svc/open-requests`, method: 'GET' })).toBe(
    '401 LOCAL_TOKEN_INVALID',
  );
  expect(ask({ target: `${prefix}/api/hello`, method: 'HEAD' })).toBe('404 ROUTE_UNKNOWN');
  expect(ask({ target: '/t/svc_path_x/api/hello', method: 'HEAD' })).toBe(
    '401 LOCAL_TOKEN_INVALID',
  );
});

test('R46: a target without a token is what it was', () => {
  for (const target of ['/v1/messages', '/t', '/tt/x', '/v1/t/x/y', '/?/t/x']) {
    expect(splitTarget(target)).toEqual({ pathToken: undefined, target });
  }
  expect(splitTarget('/t/a/v1/x?q=/t/b')).toEqual({ pathToken: 'a', target: '/v1/x?q=/t/b' });
  expect(splitTarget('/t/a')).toEqual({ pathToken: 'a', target: '/' });
  expect(PATH_TOKEN).not.toContain(LOCAL_TOKEN.slice(10));
});

describe('R46: configuration', () => {
  const parse = (upstream: object) =>
    parseConfig(
      { ...validConfig(), upstreams: [{ name: 'login', auth: 'client', ...upstream }] },
      {},
    );

  test('the kind fixes the host, and shortening is off', () => {
    expect(parse({ apiStyle: 'anthropic_messages' }).settings?.upstreams).toMatchObject([
      { baseUrl: 'https://api.anthropic.com', auth: 'client', compressionMode: 'passthrough' },
    ]);
    expect(parse({ apiStyle: 'openai_responses' }).settings?.upstreams).toMatchObject([
      { baseUrl: 'https://chatgpt.com/backend-api/codex', providerKey: '' },
    ]);
    const optedIn = { apiStyle: 'anthropic_messages', compressionMode: 'deterministic' };
    expect(parse(optedIn).settings?.upstreams).toMatchObject([
      { compressionMode: 'deterministic' },
    ]);
  });

  test.each([
    ['another host', { baseUrl: 'https://example.com' }],
    ['a host that only begins alike', { baseUrl: 'https://api.anthropic.com.example.com' }],
    ['a private host', { baseUrl: 'http://10.0.0.1', allowPrivate: true }],
    ['a key', { providerKey: 'sk-ant-api03-x' }],
    ['headers', { headers: { 'x-own': '1' } }],
    ['a style without logins', { apiStyle: 'openai_chat_completions', baseUrl: 'https://x.com' }],
  ])('%s is refused', (_, more) => {
    const { settings, problems } = parse({ apiStyle: 'anthropic_messages', ...more });
    expect(settings).toBeUndefined();
    expect(problems.map(({ path }) => path).join()).toMatch(/upstreams\[0\]/);
  });

  test('a listener on this machine may stand in, where the person allows it', () => {
    const own = {
      apiStyle: 'anthropic_messages',
      baseUrl: 'http://127.0.0.1:9',
      allowPrivate: true,
    };
    expect(parse(own).settings?.upstreams).toMatchObject([{ baseUrl: 'http://127.0.0.1:9' }]);
  });
});

test('the address of a client names it to svc alone, with a token in the path or without', () => {
  const head = (target: string, more: readonly string[] = []) => ({
    method: 'POST',
    target,
    httpVersion: '1.1',
    headers: ['host', '127.0.0.1:8765', 'content-type', 'application/json', ...more],
  });
  const bearer = ['authorization', `Bearer ${LOCAL_TOKEN}`];
  for (const admitted of [
    admit(head('/c/cline/v1/chat/completions', bearer), KEYED),
    admit(head(`/c/cline/t/${PATH_TOKEN}/v1/chat/completions`), KEYED),
  ]) {
    expect(admitted.target).toBe('/v1/chat/completions');
    expect(headerOf(admitted.headers, 'x-svc-client')).toBe('cline');
    const rules = { auth: 'bearer', providerKey: 'k', headers: {} } as const;
    const forwarded = forwardHeaders(admitted.headers, rules);
    expect(JSON.stringify(forwarded)).not.toContain('cline');
  }
  expect(headerOf(admit(head('/v1/messages', bearer), KEYED).headers, 'x-svc-client')).toBe(
    undefined,
  );
  for (const target of [
    '/c/',
    '/c/cline',
    '/c/CLINE/v1/messages',
    '/c/cline/c/cline/v1/messages',
  ]) {
    expect([target, ask({ target, more: bearer }, KEYED)]).toEqual([target, '404 ROUTE_UNKNOWN']);
  }
});
