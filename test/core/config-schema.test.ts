import { expect, test } from 'vitest';
import { formatServiceKey } from '../../src/core/memory-api/service-key.ts';
import { parseAccess, parseConfig } from '../../src/core/settings/config-schema.ts';
import { problemText } from '../../src/core/settings/config-values.ts';
import { LOCAL_TOKEN, PROVIDER_KEY, validConfig } from '../support/config.ts';

function upstream(changes: Record<string, unknown>): Record<string, unknown> {
  return {
    name: 'one',
    apiStyle: 'openai_chat_completions',
    baseUrl: 'https://api.example.com/v1',
    providerKey: PROVIDER_KEY,
    ...changes,
  };
}

function parseUpstream(changes: Record<string, unknown>, environment = {}) {
  return parseConfig({ upstreams: [upstream(changes)], localToken: LOCAL_TOKEN }, environment);
}

function paths(value: unknown, environment = {}): string[] {
  return parseConfig(value, environment).problems.map(({ path }) => path);
}

// spec: 2.4-bind-address, 2.4-memory-mode, 2.4-compression-mode, 2.4-input-budget, 2.4-elision-enabled, 2.4-elision-keep-rounds, 2.4-elision-capture-limit
test('the defaults are those of the interface', () => {
  const { settings, problems } = parseConfig(
    { upstreams: [upstream({})], localToken: LOCAL_TOKEN },
    {},
  );
  expect(problems).toEqual([]);
  expect(settings?.proxy).toEqual({
    host: '127.0.0.1',
    port: 8765,
    memoryMode: 'read-write',
    compressionMode: 'deterministic',
    inputBudget: 8192,
    recalledTokensMax: 512,
    sessionBrief: true,
    recallQuietPercent: 50,
    secondLook: 'on',
    holdOut: false,
    hookCut: false,
    elisionEnabled: true,
    elisionKeepRounds: 4,
    elisionCaptureLimit: 8,
    cacheTtl: 'client',
    boundShortening: 'off',
    bodyBytesMax: 64 * 1024 * 1024,
    zstdBytesMax: 16 * 1024 * 1024,
    recallMs: 300,
    upstreamHeadersMs: 600_000,
    drainMs: 10_000,
    keepRequests: 0,
    relayPaths: [],
  });
  expect(settings?.memory).toEqual({ kind: 'embedded' });
});

test('every wrong value is reported at once, with path, class and what is allowed', () => {
  const { settings, problems } = parseConfig(
    {
      proxy: { host: '0.0.0.0', port: 70_000, memoryMode: 'both', inputBudget: '8192' },
      upstreams: [upstream({ apiStyle: 'gpt', baseUrl: 'http://api.example.com' })],
      localToken: 'short',
    },
    {},
  );
  expect(settings).toBeUndefined();
  expect(problems.map(problemText)).toEqual([
    'proxy.host: expected one of 127.0.0.1, ::1, found "0.0.0.0"',
    'proxy.port: expected a whole number from 0 to 65535, found 70000',
    'proxy.memoryMode: expected one of off, read, write, read-write, found "both"',
    'proxy.inputBudget: expected a whole number from 0 to 10000000, found "8192"',
    'upstreams[0].apiStyle: expected one of anthropic_messages, openai_responses, openai_chat_completions, found "gpt"',
    'upstreams[0].baseUrl: expected https://, or "allowPrivate": true beside it, found a text of 22 characters',
    'localToken: expected a token that svc setup made (at least 24 letters, digits, - and _), found another text',
  ]);
});

// spec: 1.6-loopback
test('R1: only a loopback address is taken to listen on', () => {
  for (const host of ['0.0.0.0', '192.168.1.2', '::', 'localhost', 'example.com', '127.0.0.2']) {
    expect(paths({ ...validConfig(), proxy: { host } })).toEqual(['proxy.host']);
  }
  expect(paths({ ...validConfig(), proxy: { host: '::1' } })).toEqual([]);
});

test('unknown keys warn and do not stop', () => {
  const { settings, warnings } = parseConfig(
    { ...validConfig(), proxi: {}, proxy: { prot: 1 }, memory: { kind: 'embedded', x: 1 } },
    {},
  );
  expect(settings).toBeDefined();
  expect(warnings.map(({ path }) => path)).toEqual(['proxi', 'proxy.prot', 'memory.x']);
});

test('R29: a key in a wrong place is never repeated, not even as a name', () => {
  const wrong = {
    [PROVIDER_KEY]: PROVIDER_KEY,
    version: PROVIDER_KEY,
    proxy: { [PROVIDER_KEY]: 1, port: PROVIDER_KEY, memoryMode: PROVIDER_KEY },
    memory: { kind: PROVIDER_KEY },
    upstreams: [
      PROVIDER_KEY,
      {
        name: PROVIDER_KEY,
        apiStyle: PROVIDER_KEY,
        baseUrl: `https://${PROVIDER_KEY}@example.com`,
        auth: PROVIDER_KEY,
        providerKey: { env: PROVIDER_KEY },
        headers: { [PROVIDER_KEY]: `${PROVIDER_KEY}\n`, [`x ${PROVIDER_KEY}`]: 1 },
        query: { [`${PROVIDER_KEY}\n`]: PROVIDER_KEY },
      },
      upstream({ providerKey: { env: 'gsk_lower1case2key3' } }),
    ],
    localToken: `${PROVIDER_KEY} `,
  };
  const { problems, warnings } = parseConfig(
    wrong,
    { SVC_PORT: PROVIDER_KEY },
    { port: PROVIDER_KEY },
  );
  const text = [...problems, ...warnings].map(problemText).join('\n');
  expect(problems.length).toBeGreaterThan(10);
  expect(text).not.toContain('CANARY');
  expect(text).not.toContain('gsk_');
});

test('R16: header and query values that split, cut or cannot be sent are refused', () => {
  for (const value of ['a\rb', 'a\nb', 'a\0b', 'a\u0100b', 'a\u001fb', 'a\u007fb', 7, null]) {
    expect(parseUpstream({ headers: { 'X-A': value } }).problems).toHaveLength(1);
    expect(parseUpstream({ query: { a: value } }).problems).toHaveLength(1);
  }
  expect(parseUpstream({ headers: { 'X-A': 'caf\u00e9 \t!' } }).problems).toEqual([]);
});

test('header names that frame a message, are no names or come twice are refused', () => {
  const names = ['Host', 'content-length', 'Transfer-Encoding', 'connection', 'x-svc-memory-mode'];
  for (const name of [...names, 'a b', '', 'Accept-Encoding', 'a:b']) {
    expect(parseUpstream({ headers: { [name]: 'x' } }).problems).toHaveLength(1);
  }
  expect(parseUpstream({ headers: { 'X-A': '1', 'x-a': '2' } }).problems).toHaveLength(1);
});

// spec: 2.3-api-key-placeholder
test('$API_KEY becomes the key, literally and wherever it stands', () => {
  const key = 'sk-$&-$1-$$';
  const { settings } = parseUpstream({
    providerKey: key,
    auth: 'none',
    headers: { 'Api-Key': '$API_KEY', Both: 'a $API_KEY b $API_KEY' },
    query: { key: '$API_KEY' },
  });
  expect(settings?.upstreams[0]?.headers).toEqual({ 'Api-Key': key, Both: `a ${key} b ${key}` });
  expect(settings?.upstreams[0]?.query).toEqual({ key });
});

test('a credential may be the name of a variable, and one that is not set is told as such', () => {
  const changes = { providerKey: { env: 'WORK_KEY' } };
  const { settings } = parseUpstream(changes, { WORK_KEY: 'sk-work' });
  expect(settings?.upstreams[0]?.providerKey).toBe('sk-work');
  const { problems } = parseUpstream(changes, {});
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatchObject({ path: 'upstreams[0].providerKey', isUnset: true });
  expect(parseUpstream(changes, { WORK_KEY: 'two words' }).problems[0]?.isUnset).toBe(false);
});

test('a provider without a key needs auth none', () => {
  const { providerKey: _, ...keyless } = upstream({});
  const config = (auth: string) => ({ upstreams: [{ ...keyless, auth }], localToken: LOCAL_TOKEN });
  expect(paths(config('bearer'))).toEqual(['upstreams[0].providerKey']);
  expect(parseConfig(config('none'), {}).settings?.upstreams[0]?.providerKey).toBe('');
});

test('one upstream an API style', () => {
  const upstreams = [upstream({}), upstream({ name: 'two' })];
  expect(paths({ upstreams, localToken: LOCAL_TOKEN })).toEqual(['upstreams[1].apiStyle']);
});

// spec: 5.6-https-only
test('a base URL is https and public, or private by its own word', () => {
  const refused = [
    'http://api.example.com',
    'https://127.0.0.1',
    'https://0x7f.1',
    'https://2130706433',
    'https://[::1]',
    'https://[::ffff:127.0.0.1]',
    'https://10.1.2.3',
    'https://172.16.0.1',
    'https://192.168.0.1',
    'https://169.254.169.254',
    'https://localhost',
    'https://gateway',
    'https://a.local',
    'https://user@example.com',
    'https://example.com/?a=b',
    'https://example.com/#a',
    'https://example.com/%23',
    'https://example.com\\a',
    ' https://example.com',
    'ftp://example.com',
    'example.com',
    '',
    7,
  ];
  for (const baseUrl of refused) {
    expect(parseUpstream({ baseUrl }).problems.map(({ path }) => path)).toEqual([
      'upstreams[0].baseUrl',
    ]);
  }
  for (const baseUrl of ['http://127.0.0.1:11434/v1', 'http://gateway', 'https://10.0.0.1']) {
    expect(parseUpstream({ baseUrl, allowPrivate: true }).problems).toEqual([]);
  }
});

test('the base URL of a host is the same with and without /v1 and slash; a version behind a prefix stays', () => {
  const kept = (baseUrl: string) => parseUpstream({ baseUrl }).settings?.upstreams[0]?.baseUrl;
  for (const end of ['', '/', '/v1', '/v1/']) {
    expect(kept(`https://a.example${end}`)).toBe('https://a.example');
  }
  expect(kept('https://a.example/x/')).toBe('https://a.example/x');
  // To an OpenAI client it is another address than the prefix alone.
  expect(kept('https://a.example/x/v1/')).toBe('https://a.example/x/v1');
  expect(kept('https://a.example/api/v4')).toBe('https://a.example/api/v4');
});

test('a flag beats a variable, which beats the file, which beats the default', () => {
  const file = { ...validConfig(), proxy: { port: 1001 } };
  const port = (environment: object, flags: object) =>
    parseConfig(file, { ...environment }, flags).settings?.proxy.port;
  expect(port({}, {})).toBe(1001);
  expect(port({ SVC_PORT: '1002' }, {})).toBe(1002);
  expect(port({ SVC_PORT: '' }, {})).toBe(1001);
  expect(port({ SVC_PORT: '1002' }, { port: '1003' })).toBe(1003);
});

test('every setting has its variable', () => {
  const { settings } = parseConfig(validConfig(), {
    SVC_HOST: '::1',
    SVC_MEMORY_MODE: 'read',
    SVC_COMPRESSION_MODE: 'shadow',
    SVC_INPUT_BUDGET: '1',
    SVC_RECALLED_TOKENS_MAX: '2',
    SVC_ELISION_ENABLED: 'off',
    SVC_SESSION_BRIEF: 'off',
    SVC_RECALL_QUIET_PERCENT: '80',
    SVC_ELISION_KEEP_ROUNDS: '3',
    SVC_ELISION_CAPTURE_LIMIT: '5',
    SVC_CACHE_TTL: 'auto',
    SVC_BODY_BYTES_MAX: '2048',
    SVC_ZSTD_BYTES_MAX: '1024',
    SVC_RECALL_MS: '50',
    SVC_UPSTREAM_HEADERS_MS: '1000',
    SVC_DRAIN_MS: '0',
    SVC_HOLD_OUT: 'on',
    SVC_KEEP_REQUESTS: '7',
    SVC_BOUND_SHORTENING: 'provider',
    SVC_SECOND_LOOK: 'off',
    SVC_HOOK_CUT: 'on',
    SVC_RELAY_PATHS: '/v1/embeddings, /v1/audio',
  });
  expect(settings?.proxy).toEqual({
    host: '::1',
    port: 8765,
    memoryMode: 'read',
    compressionMode: 'shadow',
    inputBudget: 1,
    recalledTokensMax: 2,
    sessionBrief: false,
    recallQuietPercent: 80,
    secondLook: 'off',
    hookCut: true,
    elisionEnabled: false,
    elisionKeepRounds: 3,
    elisionCaptureLimit: 5,
    cacheTtl: 'auto',
    boundShortening: 'provider',
    bodyBytesMax: 2048,
    zstdBytesMax: 1024,
    recallMs: 50,
    upstreamHeadersMs: 1000,
    drainMs: 0,
    holdOut: true,
    keepRequests: 7,
    relayPaths: ['/v1/embeddings', '/v1/audio'],
  });
});

test('a wrong variable or flag is named by its own name', () => {
  const { problems } = parseConfig(
    validConfig(),
    { SVC_INPUT_BUDGET: '1e3' },
    { memoryMode: 'all' },
  );
  expect(problems.map(problemText)).toEqual([
    'proxy.memoryMode (--memory-mode): expected one of off, read, write, read-write, found "all"',
    'proxy.inputBudget (SVC_INPUT_BUDGET): expected a whole number from 0 to 10000000, found a text of 3 characters',
  ]);
});

test('R5: relay paths are exact paths', () => {
  for (const path of [
    'v1/a',
    '/',
    '/a/../b',
    '/a//b',
    '/a?b',
    '/a#b',
    '/a%2fb',
    '/a\\b',
    '/./a',
    '/a/',
  ]) {
    expect(paths({ ...validConfig(), proxy: { relayPaths: [path] } })).toEqual([
      'proxy.relayPaths',
    ]);
  }
});

test('the local token is no provider key', () => {
  const config = validConfig();
  const written = parseConfig({ ...config, localToken: PROVIDER_KEY }, {}).problems;
  expect(written.map(problemText)).toEqual([
    "upstreams[0].providerKey: expected the key of the provider, found svc's own token",
  ]);
});

test.each([
  ['http://127.0.0.1:8765/v1', '127.0.0.1', 1],
  ['http://127.1:8765', '127.0.0.1', 1],
  ['http://localhost:8765/t/svc_path_x', '127.0.0.1', 1],
  ['http://[::1]:8765', '::1', 1],
  ['http://127.0.0.1:8766', '127.0.0.1', 0],
  ['http://192.168.0.7:8765', '127.0.0.1', 0],
])('a provider at %s is svc itself where that is its own address (%s)', (baseUrl, host, count) => {
  const upstreams = [upstream({ baseUrl, allowPrivate: true })];
  const config = { ...validConfig(), upstreams, proxy: { host, port: 8765 } };
  const { problems } = parseConfig(config, {});
  expect(problems.map(problemText)).toEqual(
    [
      'upstreams[0].baseUrl: expected the address of a provider, found the address on which svc itself listens',
    ].slice(0, count),
  );
});

test('a variable that holds the local token, as print-config sets it, is told by its name', () => {
  const changes = { providerKey: { env: 'WORK_KEY' } };
  const { problems } = parseUpstream(changes, { WORK_KEY: LOCAL_TOKEN });
  expect(problems.map(problemText)).toEqual([
    "upstreams[0].providerKey: expected the key of the provider in $WORK_KEY, found svc's own token, which svc print-config puts there for clients",
  ]);
  expect(problems[0]).toMatchObject({ variable: 'WORK_KEY' });
});

test('hosted memory needs its address and its key', () => {
  const memory = {
    kind: 'hosted',
    baseUrl: 'https://memory.example.com',
    serviceKey: 'sk-service',
  };
  const read = (other: object = {}) =>
    parseConfig({ ...validConfig(), memory: { ...memory, ...other } }, {});
  expect(read().settings?.memory).toEqual({ ...memory, allowPrivate: false });
  expect(read({ baseUrl: 'http://127.0.0.1:8790' }).settings?.memory).toMatchObject({
    baseUrl: 'http://127.0.0.1:8790',
    allowPrivate: true,
  });
  expect(read({ baseUrl: 'https://10.0.0.7', allowPrivate: true }).problems).toEqual([]);
  for (const other of [
    { baseUrl: 'http://memory.example.com' },
    { baseUrl: 'http://10.0.0.7', allowPrivate: true },
    { baseUrl: 'https://10.0.0.7' },
  ]) {
    expect(read(other).problems.map(({ path }) => path)).toEqual(['memory.baseUrl']);
  }
  expect(read({ allowPrivate: 1 }).problems[0]?.path).toBe('memory.allowPrivate');
  expect(paths({ ...validConfig(), memory: { kind: 'hosted' } })).toEqual([
    'memory.baseUrl',
    'memory.serviceKey',
  ]);
  expect(paths({ ...validConfig(), memory: 'embedded' })).toEqual(['memory']);
});

test('a service key that lost a character is found before it is sent, and is not shown', () => {
  const key = formatServiceKey(new Uint8Array(8).fill(1), new Uint8Array(32).fill(2));
  const read = (serviceKey: string) => {
    const memory = { kind: 'hosted', baseUrl: 'https://memory.example.com', serviceKey };
    return parseConfig({ ...validConfig(), memory }, {}).problems;
  };
  expect(read(key)).toEqual([]);
  expect(read(key.slice(0, -1)).map(({ path }) => path)).toEqual(['memory.serviceKey']);
  expect(JSON.stringify(read(key.slice(0, -1)))).not.toContain(key.slice(9, 21));
});

test('what a client needs can be told although a provider key is missing', () => {
  const config = { ...validConfig(), upstreams: [{ name: 'broken' }] };
  expect(parseAccess(config, { SVC_PORT: '9' }).access).toEqual({
    host: '127.0.0.1',
    port: 9,
    localToken: LOCAL_TOKEN,
  });
  expect(parseAccess({ proxy: { port: -1 } }, {}).problems.map(({ path }) => path)).toEqual([
    'proxy.port',
    'localToken',
  ]);
});

test('a base URL that is an object without a text form is a problem, not a crash', () => {
  const memory = { kind: 'hosted', baseUrl: { toString: null }, serviceKey: 'a-service-key' };
  const { problems } = parseConfig({ ...validConfig(), memory }, {});
  expect(problems.map(({ path }) => path)).toEqual(['memory.baseUrl']);
});
