import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ProxyError } from '../../src/core/errors.ts';
import { ConnectionGate } from '../../src/core/http/connection-gate.ts';
import { type Admission, admit, type GatePolicy } from '../../src/core/http/gate.ts';
import type { RequestHead } from '../../src/core/http/http-form.ts';
import { digestOf } from '../../src/core/http/local-token.ts';
import type { Login } from '../../src/core/http/logins.ts';

const TOKENS = ['svc_local_one', 'svc_local_two'] as const;
const LOGIN = `Bearer sk-ant-oat${'x'.repeat(20)}`;

const BASE: GatePolicy = {
  port: 8765,
  tokenDigests: [digestOf(TOKENS[0])],
  relayPaths: [],
  bodyBytesMax: 1_000,
  zstdBytesMax: 100,
};

/** Few values of each kind, so that equal heads and heads that differ in one place are common. */
const heads: fc.Arbitrary<RequestHead> = fc
  .record({
    method: fc.constantFrom('POST', 'POST', 'POST', 'GET'),
    target: fc.constantFrom('/v1/messages', '/v1/messages', '/v1/models', '/v1/other'),
    httpVersion: fc.constantFrom('1.1', '1.1', '1.1', '1.0'),
    host: fc.constantFrom('127.0.0.1:8765', '127.0.0.1:8765', 'evil.example'),
    token: fc.constantFrom(...TOKENS, TOKENS[0]),
    length: fc.constantFrom('10', '11', '0', '1000', '1001', '', '-1', '1e9'),
    extra: fc.constantFrom(
      [],
      [],
      ['origin', 'https://evil.example'],
      ['content-length', '12'],
      ['content-encoding', 'zstd'],
      ['transfer-encoding', 'chunked'],
      ['x-svc-memory-mode', 'off'],
      ['x-svc-memory-mode', 'wrong'],
      ['expect', '100-continue'],
      ['authorization', LOGIN],
    ),
  })
  .map(({ method, target, httpVersion, host, token, length, extra }) => ({
    method,
    target,
    httpVersion,
    headers: [
      'Host',
      host,
      'x-svc-local-token',
      token,
      'Content-Type',
      'application/json',
      ...(length === '' ? [] : ['Content-Length', length]),
      ...extra,
    ],
  }));

type Step =
  | { readonly kind: 'request'; readonly head: RequestHead }
  | { readonly kind: 'tokens'; readonly token: string }
  | { readonly kind: 'login'; readonly login: Login | undefined };

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: heads.map((head) => ({ kind: 'request', head }) as const) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...TOKENS).map((token) => ({ kind: 'tokens', token }) as const),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom<Login | undefined>('claude', undefined)
      .map((login) => ({ kind: 'login', login }) as const),
  },
);

// A sequence repeats its heads, as a client does.
const sequences = fc
  .array(steps, { minLength: 1, maxLength: 6 })
  .chain((few) => fc.array(fc.constantFrom(...few), { minLength: 2, maxLength: 12 }));

test('R2 to R8: the gate of a connection decides as the gate does, whatever came before', () => {
  fc.assert(
    fc.property(sequences, (sequence) => {
      const gate = new ConnectionGate();
      let login: Login | undefined;
      let policy: GatePolicy = { ...BASE, loginOf: () => login };
      for (const step of sequence) {
        if (step.kind === 'tokens') policy = { ...policy, tokenDigests: [digestOf(step.token)] };
        else if (step.kind === 'login') login = step.login;
        else {
          const { head } = step;
          const decided = verdict(() => gate.admit(head, policy));
          expect(decided).toEqual(verdict(() => admit(head, policy)));
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

const headOf = (length: string, ...more: string[]): RequestHead => ({
  method: 'POST',
  target: '/v1/messages',
  httpVersion: '1.1',
  headers: [
    'Host',
    '127.0.0.1:8765',
    'x-api-key',
    TOKENS[0],
    'Content-Type',
    'application/json',
    'Content-Length',
    length,
    ...more,
  ],
});

test('the same headers are the same list, without the length of the body', () => {
  const gate = new ConnectionGate();
  const first = gate.admit(headOf('10', 'x-one', '1'), BASE);
  const second = gate.admit(headOf('999', 'x-one', '1'), BASE);
  expect(second.headers).toBe(first.headers);
  expect(second.headers).not.toContain('Content-Length');
  expect([first.body?.length, second.body?.length]).toEqual([10, 999]);
  expect(gate.admit(headOf('10', 'x-one', '2'), BASE).headers).toContain('2');
});

test('a long head is not remembered', () => {
  const gate = new ConnectionGate();
  const admitted = (chars: number): Admission => {
    return gate.admit(headOf('10', 'x-state', 's'.repeat(chars)), BASE);
  };
  expect(admitted(16_000).headers).toBe(admitted(16_000).headers);
  expect(admitted(16_385).headers).not.toBe(admitted(16_385).headers);
});

function verdict(decide: () => Admission): unknown {
  try {
    return decide();
  } catch (error) {
    return error instanceof ProxyError ? [error.code, error.message] : error;
  }
}
