import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ERROR_ROWS, ProxyError } from '../../src/core/errors.ts';
import { admit, type GatePolicy } from '../../src/core/http/gate.ts';
import type { RequestHead } from '../../src/core/http/http-form.ts';

const TOKEN = 'svc_local_right';
const policy: GatePolicy = {
  port: 8765,
  tokenDigests: [digestOf(TOKEN)],
  relayPaths: ['/v1/embeddings'],
  bodyBytesMax: 1_000,
  zstdBytesMax: 100,
};
const HOST = ['Host', '127.0.0.1:8765'];
const AUTH = ['Authorization', `Bearer ${TOKEN}`];
const JSON_BODY = ['Content-Type', 'application/json', 'Content-Length', '10'];

function headOf(changes: Partial<RequestHead> = {}): RequestHead {
  return {
    method: 'POST',
    target: '/v1/messages',
    httpVersion: '1.1',
    headers: [...HOST, ...AUTH, ...JSON_BODY],
    ...changes,
  };
}

/** The code of the refusal, or 'admitted'. */
function verdict(changes: Partial<RequestHead>, own: Partial<GatePolicy> = {}): string {
  try {
    admit(headOf(changes), { ...policy, ...own });
    return 'admitted';
  } catch (error) {
    return error instanceof ProxyError ? error.code : String(error);
  }
}

function messageOf(changes: Partial<RequestHead>): string {
  try {
    admit(headOf(changes), policy);
    return '';
  } catch (error) {
    return error instanceof ProxyError ? error.message : String(error);
  }
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

const withHeaders = (...headers: string[]): Partial<RequestHead> => ({
  headers: [...HOST, ...AUTH, ...JSON_BODY, ...headers],
});
test('R9: a header name that ends with a space is no header', () => {
  expect(verdict(withHeaders('X-Any ', '1'))).toBe('REQUEST_MALFORMED');
  expect(verdict(withHeaders('X-Any', '1 '))).toBe('admitted');
});

const withHost = (...hosts: string[]): Partial<RequestHead> => ({
  headers: [...AUTH, ...JSON_BODY, ...hosts.flatMap((host) => ['Host', host])],
});
const withAuth = (...headers: string[]): Partial<RequestHead> => ({
  headers: [...HOST, ...JSON_BODY, ...headers],
});

describe('Host and origin', () => {
  test.each(['127.0.0.1:8765', 'localhost:8765', '[::1]:8765', 'LocalHost:8765'])(
    'R2: Host %s is ours',
    (host) => expect(verdict(withHost(host))).toBe('admitted'),
  );

  test.each([
    '127.0.0.1',
    'localhost',
    '127.0.0.1:8766',
    'localhost:08765',
    'example.com:8765',
    'x@localhost:8765',
    '2130706433:8765',
    '127.1:8765',
    '0.0.0.0:8765',
    'localhost.:8765',
    'localhost:8765.evil.example',
    '[::]:8765',
    '[0:0:0:0:0:0:0:1]:8765',
    'printer.local:8765',
    '',
  ])('R2: Host "%s" is refused', (host) => expect(verdict(withHost(host))).toBe('ORIGIN_REFUSED'));

  test('R2: no Host, or two, is malformed', () => {
    expect(verdict(withHost())).toBe('REQUEST_MALFORMED');
    expect(verdict(withHost('127.0.0.1:8765', 'evil.example'))).toBe('REQUEST_MALFORMED');
    expect(verdict(withHost('127.0.0.1:8765', '127.0.0.1:8765'))).toBe('REQUEST_MALFORMED');
  });

  test.each(['http://127.0.0.1:8765', 'https://evil.example', 'null', ''])(
    'R3: Origin "%s" is refused',
    (origin) => expect(verdict(withHeaders('Origin', origin))).toBe('ORIGIN_REFUSED'),
  );

  test('R3: Sec-Fetch-Site other than none is refused, Sec-Fetch-Mode alone is not', () => {
    for (const site of ['cross-site', 'same-site', 'same-origin']) {
      expect(verdict(withHeaders('Sec-Fetch-Site', site))).toBe('ORIGIN_REFUSED');
    }
    const twice = withHeaders('Sec-Fetch-Site', 'none', 'Sec-Fetch-Site', 'cross-site');
    expect(verdict(twice)).toBe('ORIGIN_REFUSED');
    expect(verdict(withHeaders('Sec-Fetch-Site', 'none'))).toBe('admitted');
    expect(verdict(withHeaders('Sec-Fetch-Mode', 'cors'))).toBe('admitted');
  });

  test('R3: OPTIONS has no answer, with a token or without, on any path', () => {
    for (const target of ['/v1/messages', '/health', '/nothing', '*']) {
      const headers = [...HOST];
      expect(verdict({ method: 'OPTIONS', target, headers })).toBe('METHOD_NOT_ALLOWED');
    }
  });

  test('R2, R3: a web page is sent away from the open paths too', () => {
    const open = { method: 'GET', target: '/health' };
    expect(verdict({ ...open, headers: HOST })).toBe('admitted');
    expect(verdict({ ...open, headers: ['Host', 'evil.example:8765'] })).toBe('ORIGIN_REFUSED');
    expect(verdict({ ...open, headers: [...HOST, 'Origin', 'null'] })).toBe('ORIGIN_REFUSED');
  });
});

describe('the local token', () => {
  test('R4: is taken from Authorization or x-api-key, either of two is enough', () => {
    expect(verdict(withAuth('Authorization', `Bearer ${TOKEN}`))).toBe('admitted');
    expect(verdict(withAuth('authorization', `bEARER  ${TOKEN}`))).toBe('admitted');
    expect(verdict(withAuth('X-Api-Key', TOKEN))).toBe('admitted');
    const right = ['Authorization', `Bearer ${TOKEN}`];
    expect(verdict(withAuth(...right, 'x-api-key', 'sk-ant-other'))).toBe('admitted');
    expect(verdict(withAuth('Authorization', 'Bearer other', 'x-api-key', TOKEN))).toBe('admitted');
  });

  test.each([
    ['nothing', []],
    ['a wrong bearer', ['Authorization', 'Bearer svc_local_wrong']],
    ['a wrong key', ['x-api-key', 'svc_local_wrong']],
    ['an empty key', ['x-api-key', '']],
    ['an empty bearer', ['Authorization', 'Bearer ']],
    ['no scheme', ['Authorization', TOKEN]],
    ['another scheme', ['Authorization', `Basic ${TOKEN}`]],
    ['a longer token', ['x-api-key', `${TOKEN}x`]],
    ['a shorter token', ['x-api-key', TOKEN.slice(0, -1)]],
    ['another case', ['x-api-key', TOKEN.toUpperCase()]],
    ['a cookie', ['Cookie', `token=${TOKEN}; x-api-key=${TOKEN}`]],
    ['an underscore', ['x_api_key', TOKEN]],
  ])('R4: %s is refused', (_name, headers) => {
    expect(verdict(withAuth(...headers))).toBe('LOCAL_TOKEN_INVALID');
  });

  test('R4: is not taken from the query', () => {
    const target = `/v1/messages?x-api-key=${TOKEN}&token=${TOKEN}`;
    expect(verdict({ ...withAuth(), target })).toBe('LOCAL_TOKEN_INVALID');
  });

  test('R4: a credential header that comes twice is malformed, even with the right token', () => {
    expect(verdict(withAuth(...AUTH, ...AUTH))).toBe('REQUEST_MALFORMED');
    expect(verdict(withAuth('x-api-key', TOKEN, 'X-API-Key', TOKEN))).toBe('REQUEST_MALFORMED');
  });

  test('R4: is asked for on every path but the two of the process check', () => {
    const paths = [
      '/v1/messages',
      '/v1/models',
      '/v1/nothing',
      '/',
      '/healthz',
      '/health/',
      '//livez',
    ];
    for (const target of paths) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        expect(verdict({ method, target, headers: HOST }), target).toBe('LOCAL_TOKEN_INVALID');
      }
    }
    for (const target of ['/health', '/livez', '/health?x=1']) {
      expect(verdict({ method: 'GET', target, headers: HOST })).toBe('admitted');
    }
  });

  test('R31: each of several valid tokens is taken, and none when there are none', () => {
    const own = { tokenDigests: [digestOf('old'), digestOf('new')] };
    expect(verdict(withAuth('x-api-key', 'old'), own)).toBe('admitted');
    expect(verdict(withAuth('x-api-key', 'new'), own)).toBe('admitted');
    expect(verdict(withAuth('x-api-key', TOKEN), own)).toBe('LOCAL_TOKEN_INVALID');
    expect(verdict(withAuth('x-api-key', ''), { tokenDigests: [] })).toBe('LOCAL_TOKEN_INVALID');
  });
});

describe('form', () => {
  test.each(['1.0', '0.9', '2.0', '1.2'])('R6: HTTP/%s is refused', (httpVersion) => {
    expect(verdict({ httpVersion })).toBe('HTTP_VERSION_UNSUPPORTED');
  });

  test.each([
    'http://127.0.0.1:8765/v1/messages',
    'https://api.anthropic.com/v1/messages',
    '/v1/messages#/health',
    '/health#',
    '/v1\\messages',
    '\\v1\\messages',
    'v1/messages',
    '127.0.0.1:8765',
    '*',
    '',
  ])('R5: target "%s" is malformed', (target) => {
    expect(verdict({ target })).toBe('REQUEST_MALFORMED');
  });

  test('R7: 100 headers pass, 101 do not, repeats counted', () => {
    const filler = (count: number): string[] =>
      Array.from({ length: count }, () => ['x-a', '1']).flat();
    expect(verdict(withHeaders(...filler(96)))).toBe('admitted');
    expect(verdict(withHeaders(...filler(97)))).toBe('HEADERS_TOO_MANY');
  });
});

describe('modes', () => {
  test('R8: a mode outside of its vocabulary, empty or repeated is refused', () => {
    for (const name of ['x-svc-memory-mode', 'X-Svc-Compression-Mode']) {
      for (const values of [['on'], [''], ['OFF'], ['off', 'off'], ['read,write']]) {
        const headers = values.flatMap((value) => [name, value]);
        expect(verdict(withHeaders(...headers)), `${name}: ${values.join(' and ')}`).toBe(
          'MODE_INVALID',
        );
      }
    }
    expect(verdict(withHeaders('x-svc-memory-mode', 'read-write'))).toBe('admitted');
    expect(verdict(withHeaders('x-svc-compression-mode', 'shadow'))).toBe('admitted');
  });

  test('R8: who has no token learns nothing about modes', () => {
    expect(verdict(withAuth('x-svc-memory-mode', 'on'))).toBe('LOCAL_TOKEN_INVALID');
  });
});

describe('the body, seen from the head', () => {
  const post = (...headers: string[]): string =>
    verdict({ headers: [...HOST, ...AUTH, ...headers] });
  const length = ['Content-Length', '10'];

  test('R6: a body must be declared as JSON', () => {
    for (const type of [
      'application/json',
      'Application/JSON',
      'application/json; charset=utf-8',
      'application/json ;charset=utf-8',
    ]) {
      expect(post(...length, 'Content-Type', type), type).toBe('admitted');
    }
    for (const type of ['text/plain', 'application/jsonp', 'application/json-x', 'text/json', '']) {
      expect(post(...length, 'Content-Type', type), type).toBe('CONTENT_TYPE_UNSUPPORTED');
    }
    expect(post(...length)).toBe('CONTENT_TYPE_UNSUPPORTED');
    expect(post()).toBe('admitted');
  });

  test('R6: transfer encodings other than one chunked are refused', () => {
    const type = ['Content-Type', 'application/json'];
    expect(post(...type, 'Transfer-Encoding', 'chunked')).toBe('admitted');
    expect(post(...type, 'Transfer-Encoding', 'Chunked')).toBe('admitted');
    for (const coding of ['gzip, chunked', 'identity', 'gzip', 'chunked, chunked', '']) {
      expect(post(...type, 'Transfer-Encoding', coding)).toBe('TRANSFER_ENCODING_UNSUPPORTED');
    }
    const twice = ['Transfer-Encoding', 'chunked', 'Transfer-Encoding', 'chunked'];
    expect(post(...type, ...twice)).toBe('TRANSFER_ENCODING_UNSUPPORTED');
  });

  test('R6: only 100-continue can be expected', () => {
    expect(verdict(withHeaders('Expect', '100-Continue'))).toBe('admitted');
    expect(verdict(withHeaders('Expect', 'tea'))).toBe('EXPECTATION_FAILED');
    const twice = withHeaders('Expect', '100-continue', 'Expect', '100-continue');
    expect(verdict(twice)).toBe('REQUEST_MALFORMED');
  });

  test('R10: one known encoding passes, others and several do not', () => {
    for (const encoding of ['identity', 'zstd', 'gzip', 'deflate', 'br', 'GZip']) {
      expect(verdict(withHeaders('Content-Encoding', encoding)), encoding).toBe('admitted');
    }
    for (const encoding of ['compress', 'gzip, br', 'identity, zstd', 'gzip,', '', '*']) {
      expect(verdict(withHeaders('Content-Encoding', encoding)), encoding).toBe(
        'ENCODING_UNSUPPORTED',
      );
    }
    const twice = withHeaders('Content-Encoding', 'zstd', 'Content-Encoding', 'zstd');
    expect(verdict(twice)).toBe('ENCODING_UNSUPPORTED');
  });

  test('R10: a length of exactly the limit passes, one more does not; zstd has its own', () => {
    const sized = (size: number, ...more: string[]): string =>
      post('Content-Type', 'application/json', 'Content-Length', String(size), ...more);
    expect(sized(1_000)).toBe('admitted');
    expect(sized(1_001)).toBe('BODY_TOO_LARGE');
    expect(sized(100, 'Content-Encoding', 'zstd')).toBe('admitted');
    expect(sized(101, 'Content-Encoding', 'zstd')).toBe('BODY_TOO_LARGE');
    expect(sized(1_000, 'Content-Encoding', 'br')).toBe('admitted');
    expect(sized(1_001, 'Content-Encoding', 'br')).toBe('BODY_TOO_LARGE');
    expect(ERROR_ROWS.BODY_TOO_LARGE.hint).toContain('in zstd also proxy.zstdBytesMax');
  });

  test('R11: an empty body with an encoding is unreadable', () => {
    expect(post('Content-Length', '0', 'Content-Encoding', 'zstd')).toBe('BODY_UNREADABLE');
  });

  test('a GET with a body is malformed', () => {
    const target = '/v1/models';
    expect(verdict({ method: 'GET', target })).toBe('REQUEST_MALFORMED');
    const headers = [...HOST, ...AUTH, 'Content-Length', '0'];
    expect(verdict({ method: 'GET', target, headers })).toBe('admitted');
  });
});

test('a refusal never repeats what the client sent', () => {
  const secret = 'sk-ant-secret';
  const messages = [
    messageOf({ target: `/v1/${secret}` }),
    messageOf({ target: `/v1/v1/${secret}` }),
    messageOf(withAuth('x-api-key', secret)),
    messageOf(withHost(secret)),
    messageOf(withHeaders('Origin', secret)),
    messageOf(withHeaders('Content-Encoding', secret)),
    messageOf(withHeaders('x-svc-memory-mode', secret)),
  ];
  for (const message of messages) {
    expect(message).not.toBe('');
    expect(message).not.toContain(secret);
  }
});
