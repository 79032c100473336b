import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  AUTHORIZED,
  startServer,
  type TestServer,
  TOKEN,
  writeRequest,
} from '../support/local-server.ts';
import { exchange, openSocket, parseAnswer, readAll } from '../support/raw-http.ts';

const JSON_TYPE = 'Content-Type: application/json';
let running: TestServer;

beforeAll(async () => {
  running = await startServer(undefined, { relayPaths: ['/v1/embeddings'] });
});
afterAll(() => running.close());

describe('what passes', () => {
  test('R4: reaches the handler with its head as it came and its body', async () => {
    const answer = await running.ask({
      target: '/v1/messages?beta=true&x=%20',
      headers: [AUTHORIZED, JSON_TYPE, 'X-Odd:  two  words ', 'x-odd: again'],
      body: '{"a":1.0}',
    });
    expect(answer.status).toBe(200);
    const request = running.seen.at(-1);
    expect(request).toMatchObject({
      method: 'POST',
      target: '/v1/messages?beta=true&x=%20',
      route: { kind: 'model', dialect: 'anthropic_messages' },
    });
    expect(request?.body?.toString()).toBe('{"a":1.0}');
    expect(request?.headers).toContain('X-Odd');
    expect(request?.headers).toContain('two  words');
    expect(request?.id).toMatch(/^req_/);
  });

  test('a request without a body has none', async () => {
    const headers = [`x-api-key: ${TOKEN}`, 'anthropic-version: 2023-06-01'];
    const answer = await running.ask({ method: 'GET', target: '/v1/models?limit=1000', headers });
    expect(answer.status).toBe(200);
    expect(running.seen.at(-1)?.body).toBeUndefined();
    expect(running.seen.at(-1)?.route).toEqual({ kind: 'relay', dialect: 'anthropic_messages' });
  });

  test('R31: a rotated token is valid at once, the old one is not', async () => {
    const headers = (token: string): string[] => [`x-api-key: ${token}`];
    const get = { method: 'GET', target: '/v1/models' };
    running.setTokens('svc_local_new');
    expect((await running.ask({ ...get, headers: headers('svc_local_new') })).status).toBe(200);
    expect((await running.ask({ ...get, headers: headers(TOKEN) })).status).toBe(401);
    running.setTokens(TOKEN);
    expect((await running.ask({ ...get, headers: headers(TOKEN) })).status).toBe(200);
  });

  test('one connection serves many requests', async () => {
    const one = writeRequest(running.port, {
      headers: [AUTHORIZED, JSON_TYPE, 'Connection: keep-alive'],
      body: '{}',
    });
    const last = writeRequest(running.port, { body: '{}' });
    const text = await exchange(running.port, Buffer.concat([one, one, last]));
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(3);
  });
});

describe('the process check', () => {
  // spec: 4.4-health, 4.4-livez
  test.each(['/health', '/livez'])(
    'R1: %s answers without a token and tells nothing',
    async (target) => {
      const answer = await running.ask({ method: 'GET', target, headers: [] });
      expect(answer.status).toBe(200);
      expect(answer.body).toBe('{"status":"ok","service":"svc"}');
      const names = [...answer.headers.keys()].filter((name) => name.startsWith('x-svc'));
      expect(names).toEqual([]);
      const head = await running.ask({ method: 'HEAD', target, headers: [] });
      expect(head).toMatchObject({ status: 200, body: '' });
    },
  );

  test('R2, R3: is not for web pages', async () => {
    const rebound = { method: 'GET', target: '/health', headers: ['Host: evil.example'] };
    expect((await running.ask(rebound)).status).toBe(403);
    const page = { method: 'GET', target: '/health', headers: ['Origin: https://evil.example'] };
    expect((await running.ask(page)).status).toBe(403);
  });
});

interface Refusal {
  readonly name: string;
  readonly status: number;
  readonly code: string;
  readonly request: Parameters<TestServer['ask']>[0];
}

const refusals: readonly Refusal[] = [
  {
    name: 'R2: a rebound name',
    status: 403,
    code: 'ORIGIN_REFUSED',
    request: { headers: ['Host: evil.example:80', AUTHORIZED, JSON_TYPE], body: '{}' },
  },
  {
    name: 'R2: two Hosts',
    status: 400,
    code: 'REQUEST_MALFORMED',
    request: { headers: ['Host: 127.0.0.1', 'Host: evil.example', AUTHORIZED] },
  },
  {
    name: 'R3: a web page',
    status: 403,
    code: 'ORIGIN_REFUSED',
    request: { headers: [AUTHORIZED, JSON_TYPE, 'Origin: null'], body: '{}' },
  },
  {
    name: 'R3: a preflight',
    status: 403,
    code: 'ORIGIN_REFUSED',
    request: { method: 'OPTIONS', headers: ['Origin: https://evil.example'] },
  },
  {
    name: 'R4: no token',
    status: 401,
    code: 'LOCAL_TOKEN_INVALID',
    request: { headers: [JSON_TYPE], body: '{}' },
  },
  {
    name: 'R4: a wrong token',
    status: 401,
    code: 'LOCAL_TOKEN_INVALID',
    request: { headers: ['x-api-key: wrong', JSON_TYPE], body: '{}' },
  },
  {
    name: 'R4: a wrong token on an unknown path',
    status: 401,
    code: 'LOCAL_TOKEN_INVALID',
    request: { target: '/nothing', headers: ['x-api-key: wrong', JSON_TYPE], body: '{}' },
  },
  {
    name: 'R4: a repeated credential',
    status: 400,
    code: 'REQUEST_MALFORMED',
    request: { headers: [AUTHORIZED, AUTHORIZED, JSON_TYPE], body: '{}' },
  },
  {
    name: 'R5: an unknown path',
    status: 404,
    code: 'ROUTE_UNKNOWN',
    request: { target: '/v1/files', body: '{}' },
  },
  {
    name: 'R5: a wrong method',
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
    request: { method: 'GET' },
  },
  {
    name: 'R5: an absolute target',
    status: 400,
    code: 'REQUEST_MALFORMED',
    request: { target: 'http://127.0.0.1/v1/messages', body: '{}' },
  },
  {
    name: 'R5: a fragment',
    status: 400,
    code: 'REQUEST_MALFORMED',
    request: { target: '/v1/messages#/health', body: '{}' },
  },
  {
    name: 'R6: another content type',
    status: 415,
    code: 'CONTENT_TYPE_UNSUPPORTED',
    request: { headers: [AUTHORIZED, 'Content-Type: text/plain'], body: '{}' },
  },
  {
    name: 'R6: HTTP/1.0',
    status: 505,
    code: 'HTTP_VERSION_UNSUPPORTED',
    request: { version: '1.0', body: '{}' },
  },
  {
    name: 'R6: a chain of transfer encodings',
    status: 501,
    code: 'TRANSFER_ENCODING_UNSUPPORTED',
    request: {
      headers: [AUTHORIZED, JSON_TYPE, 'Transfer-Encoding: gzip, chunked'],
      body: '0\r\n\r\n',
    },
  },
  {
    name: 'R6: another expectation',
    status: 417,
    code: 'EXPECTATION_FAILED',
    request: { headers: [AUTHORIZED, JSON_TYPE, 'Expect: tea'], body: '{}' },
  },
  {
    name: 'R7: more than 100 headers',
    status: 431,
    code: 'HEADERS_TOO_MANY',
    request: {
      headers: [AUTHORIZED, JSON_TYPE, ...Array.from({ length: 1_500 }, () => 'a: b')],
      body: '{}',
    },
  },
  {
    name: 'R8: an unknown mode',
    status: 422,
    code: 'MODE_INVALID',
    request: { headers: [AUTHORIZED, JSON_TYPE, 'x-svc-memory-mode: on'], body: '{}' },
  },
  {
    name: 'R10: two encodings',
    status: 415,
    code: 'ENCODING_UNSUPPORTED',
    request: { headers: [AUTHORIZED, JSON_TYPE, 'Content-Encoding: gzip, br'], body: '{}' },
  },
  {
    name: 'R10: a body announced over the limit',
    status: 413,
    code: 'BODY_TOO_LARGE',
    request: { headers: [AUTHORIZED, JSON_TYPE, `Content-Length: ${(64 << 20) + 1}`] },
  },
  {
    name: 'R11: a zstd body announced over its limit',
    status: 413,
    code: 'BODY_TOO_LARGE',
    request: {
      headers: [
        AUTHORIZED,
        JSON_TYPE,
        'Content-Encoding: zstd',
        `Content-Length: ${(16 << 20) + 1}`,
      ],
    },
  },
  {
    name: 'R11: a body that is not what its encoding says',
    status: 400,
    code: 'BODY_UNREADABLE',
    request: { headers: [AUTHORIZED, JSON_TYPE, 'Content-Encoding: zstd'], body: 'not zstd' },
  },
  {
    name: 'telemetry',
    status: 404,
    code: 'ROUTE_UNKNOWN',
    request: { target: '/api/event_logging/batch', headers: [JSON_TYPE], body: '{"events":[]}' },
  },
];

describe('what is refused', () => {
  test.each(refusals)('$name: $status', async ({ status, code, request }) => {
    const before = running.seen.length;
    const answer = await running.ask(request);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('x-svc-error-code')).toBe(code);
    expect(answer.headers.get('x-svc-error-source')).toBe('proxy');
    expect(answer.headers.get('x-svc-local-proxy')).toBe('0.1.2');
    expect(answer.headers.get('x-svc-request-id')).toMatch(/^req_/);
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('content-type')).toBe('application/json');
    const cors = [...answer.headers.keys()].filter((name) => name.startsWith('access-control'));
    expect(cors).toEqual([]);
    if (request.method !== 'OPTIONS') expect(JSON.parse(answer.body).error.code).toBe(code);
    expect(running.seen.length).toBe(before);
    expect(running.reports).toEqual([]);
  });

  // spec: 7-401
  test('R4: a 401 names its scheme, a 405 its methods', async () => {
    const denied = await running.ask({ headers: [] });
    expect(denied.headers.get('www-authenticate')).toBe('Bearer');
    const wrong = await running.ask({ method: 'DELETE' });
    expect(wrong.headers.get('allow')).toBe('POST');
    const models = await running.ask({ target: '/v1/models', body: '{}' });
    expect(models.headers.get('allow')).toBe('GET, HEAD');
    const options = await running.ask({ method: 'OPTIONS', target: '/nothing', headers: [] });
    expect(options.status).toBe(405);
    expect(options.headers.get('allow')).toBe('GET, HEAD, POST');
  });

  test('has the shape of the client that asked', async () => {
    const anthropic = JSON.parse((await running.ask({ headers: [] })).body);
    expect(anthropic).toMatchObject({ type: 'error', error: { type: 'authentication_error' } });
    const target = '/v1/chat/completions';
    const openai = JSON.parse((await running.ask({ target, headers: [] })).body);
    expect(openai.error).toMatchObject({ type: 'authentication_error', param: null });
    const models = { method: 'GET', target: '/v1/models' };
    const claude = await running.ask({ ...models, headers: ['anthropic-version: 2023-06-01'] });
    expect(JSON.parse(claude.body).type).toBe('error');
    const codex = await running.ask({ ...models, headers: [] });
    expect(JSON.parse(codex.body).type).toBeUndefined();
  });

  test('a wrong base URL is answered with the right one', async () => {
    const twice = await running.ask({ target: '/v1/v1/messages', body: '{}' });
    expect(twice.status).toBe(404);
    expect(twice.body).toContain(`http://127.0.0.1:${running.port} `);
    const none = await running.ask({ target: '/responses', body: '{}' });
    expect(none.body).toContain(`http://127.0.0.1:${running.port}/v1 `);
  });
});

describe('what is not an ordinary request', () => {
  const upgrade = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: 9yLb+L4lJvqE40DvxMBBuw==',
  ];

  test.each(['/v1/responses', '/v1/nothing', '/health'])(
    'R5: an upgrade of %s is told to use HTTP, before the token is asked for',
    async (target) => {
      const answer = await running.ask({ method: 'GET', target, headers: upgrade });
      expect(answer.status).toBe(426);
      expect(answer.headers.get('connection')).toBe('close');
      expect(answer.headers.get('x-should-retry')).toBe('false');
      expect(JSON.parse(answer.body).error.code).toBe('UPGRADE_REFUSED');
    },
  );

  test('R2, R3: an upgrade from a web page is refused like any of its requests', async () => {
    const target = '/v1/responses';
    const page = { method: 'GET', target, headers: [...upgrade, 'Origin: https://evil.example'] };
    expect((await running.ask(page)).status).toBe(403);
    const rebound = { method: 'GET', target, headers: [...upgrade, 'Host: evil.example'] };
    expect((await running.ask(rebound)).status).toBe(403);
  });

  test('R5: CONNECT opens no tunnel', async () => {
    const request = 'CONNECT api.anthropic.com:443 HTTP/1.1\r\nHost: api.anthropic.com:443\r\n\r\n';
    const answer = parseAnswer(await exchange(running.port, request));
    expect(answer.status).toBe(405);
    expect(answer.headers.get('x-svc-error-code')).toBe('METHOD_NOT_ALLOWED');
  });

  test.each([
    ['a TLS handshake', Buffer.from('16030100c8010000c40303', 'hex')],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['no HTTP', 'hello\r\n\r\n'],
    ['a space before the colon', 'GET /health HTTP/1.1\r\nHost : x\r\n\r\n'],
    ['a bare line feed', 'GET /health HTTP/1.1\nHost: x\n\n'],
    ['a folded header', 'GET /health HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n'],
    ['a NUL', 'GET /health HTTP/1.1\r\nHost: a\0b\r\n\r\n'],
    ['two lengths', 'POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    [
      'a length and a transfer encoding',
      'POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a length that is no number', 'POST / HTTP/1.1\r\nContent-Length: 0x10\r\n\r\n'],
  ])('R9: %s is answered with a small 400 and closed', async (_name, request) => {
    const answer = parseAnswer(await exchange(running.port, request));
    expect(answer.status).toBe(400);
    expect(answer.headers.get('x-svc-error-code')).toBe('REQUEST_MALFORMED');
    expect(answer.headers.get('connection')).toBe('close');
    expect(JSON.parse(answer.body).error.code).toBe('REQUEST_MALFORMED');
  });

  test('R6: HTTP/0.9, and HTTP/1.0 without a Host, are not served', async () => {
    const old = parseAnswer(await exchange(running.port, 'GET /health HTTP/1.0\r\n\r\n'));
    expect(old.status).toBe(505);
    const text = await exchange(running.port, 'GET /health\r\n\r\n', 2_000);
    expect(text).not.toContain('200 OK');
  });

  test('R7: 60 KiB of headers pass, 70 KiB do not', async () => {
    const filler = (size: number): string => `x-codex-turn-metadata: ${'a'.repeat(size)}`;
    const get = { method: 'GET', target: '/v1/models' };
    const most = await running.ask({ ...get, headers: [AUTHORIZED, filler(60 << 10)] });
    expect(most.status).toBe(200);
    const more = await running.ask({ ...get, headers: [AUTHORIZED, filler(70 << 10)] });
    expect(more.status).toBe(431);
    expect(more.headers.get('x-svc-error-code')).toBe('HEADERS_TOO_MANY');
  });

  test('R6: a client is told to go on only after the gate, and not when it is refused', async () => {
    const expecting = [JSON_TYPE, 'Expect: 100-continue', 'Content-Length: 2'];
    const refused = await running.ask({ headers: expecting });
    expect(refused.status).toBe(401);

    const socket = await openSocket(running.port);
    const everything = readAll(socket);
    socket.write(writeRequest(running.port, { headers: [AUTHORIZED, ...expecting] }));
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('{}');
    expect(parseAnswer(await everything).status).toBe(200);
    expect(running.seen.at(-1)?.body?.toString()).toBe('{}');
  });

  test('R6: a refused expectation is not told to go on', async () => {
    const headers = [JSON_TYPE, 'Expect: 100-continue', 'Content-Length: 2'];
    const text = await exchange(running.port, writeRequest(running.port, { headers }));
    expect(text).not.toContain('100 Continue');
  });
});
