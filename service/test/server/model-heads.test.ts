import * as fc from 'fast-check';
import { Agent } from 'node:http';
import { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ProxyError } from '../../../src/core/errors.ts';
import type { RequestHead } from '../../../src/core/http/http-form.ts';
import type { Presented } from '../../src/server/authenticator.ts';
import { ServiceFault } from '../../src/server/fault.ts';
import { type ModelHead, ModelHeads, readModelHead } from '../../src/server/models/model-heads.ts';
import { promptOf } from '../../../test/support/dialect-wire.ts';
import { keyIdOf } from '../support/memory-service.ts';
import { type ModelService, openModelService } from '../support/model-service.ts';
import { ask } from '../../../test/support/sockets.ts';

const BODIES = { bodyBytesMax: 1_000, zstdBytesMax: 100 };
const KEYS = ['svc_live_one', 'svc_live_two'] as const;

/** Few values of each kind, so that equal heads and heads that differ in one place are common. */
const heads: fc.Arbitrary<RequestHead> = fc
  .record({
    method: fc.constantFrom('POST', 'POST', 'POST', 'GET'),
    target: fc.constantFrom('/v1/messages', '/v1/messages', '/v1/responses', '/v1/none'),
    key: fc.constantFrom(...KEYS, KEYS[0], ''),
    keyHeader: fc.constantFrom('x-api-key', 'X-Api-Key', 'authorization'),
    length: fc.constantFrom('10', '11', '0', '1000', '1001', '', '-1', '1e9'),
    extra: fc.constantFrom(
      [],
      [],
      ['anthropic-version', '2023-06-01'],
      ['content-length', '12'],
      ['content-encoding', 'zstd'],
      ['transfer-encoding', 'chunked'],
      ['x-svc-memory-mode', 'off'],
      ['x-svc-memory-mode', 'read'],
      ['x-svc-memory-mode', 'wrong'],
      ['expect', '100-continue'],
    ),
  })
  .map(({ method, target, key, keyHeader, length, extra }) => ({
    method,
    target,
    httpVersion: '1.1',
    headers: [
      'host',
      'svc.example',
      ...(key === '' ? [] : [keyHeader, key]),
      ...(length === '' ? [] : ['Content-Length', length]),
      ...extra,
      'content-type',
      'application/json',
    ],
  }));

// A sequence repeats its heads, as a client does.
const sequences = fc
  .array(heads, { minLength: 1, maxLength: 5 })
  .chain((few) => fc.array(fc.constantFrom(...few), { minLength: 2, maxLength: 12 }));

/** Stands for the authenticator: it reads the key, and refuses a head without one. */
function presentOf({ headers }: RequestHead): Presented {
  const text = KEYS.find((key) => headers.includes(key));
  if (text === undefined) throw new ServiceFault('AUTH_MISSING', 'no key');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Heads only hand it on.
  return { key: text, address: '' } as unknown as Presented;
}

test('R2, R4: what a connection remembers of a head is what reading the head gives', () => {
  fc.assert(
    fc.property(sequences, (sequence) => {
      const [known, socket] = [new ModelHeads(), new Socket()];
      for (const head of sequence) {
        const read = () => readModelHead(head, BODIES, () => presentOf(head));
        const found = known.find(socket, head);
        const told = verdict(found === undefined ? read : () => found);
        expect(told).toEqual(verdict(read));
        if ('refused' in told) known.forget(socket);
        else if (found === undefined) {
          const { read: admitted, form } = told;
          known.keep(socket, head, { ...admitted, form: () => form });
        }
      }
    }),
    { numRuns: 2_000 },
  );
});

function verdict(read: () => ModelHead) {
  try {
    const head = read();
    return { read: { ...head, form: undefined }, form: head.form() };
  } catch (error) {
    if (!(error instanceof ProxyError || error instanceof ServiceFault)) throw error;
    return { refused: [error.code, error.message] };
  }
}

test('a head that is alike is not read again, on its own connection only', () => {
  const [known, socket] = [new ModelHeads(), new Socket()];
  const headOf = (length: string): RequestHead => ({
    method: 'POST',
    target: '/v1/messages',
    httpVersion: '1.1',
    headers: [
      'host',
      'svc.example',
      'x-api-key',
      KEYS[0],
      'content-length',
      length,
      'content-type',
      'application/json',
    ],
  });
  const read = readModelHead(headOf('10'), BODIES, () => presentOf(headOf('10')));
  const form = read.form();
  known.keep(socket, headOf('10'), { ...read, form: () => form });
  const again = known.find(socket, headOf('999'));
  expect(again?.headers).toBe(read.headers);
  expect(again?.form().body).toEqual({ ...form.body, length: 999 });
  expect(known.find(socket, headOf('1001'))).toBe(undefined);
  expect(known.find(new Socket(), headOf('10'))).toBe(undefined);
  known.forget(socket);
  expect(known.find(socket, headOf('10'))).toBe(undefined);
});

/** Asks on one connection. */
async function askerOf({ port, addProvider }: ModelService) {
  await addProvider('anthropic_messages');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const body = Buffer.from(JSON.stringify(promptOf('anthropic_messages', 'Hello')));
  return async (key: string, ...more: string[]): Promise<string> => {
    const { status, headers } = await ask(port, {
      path: '/v1/messages',
      headers: ['x-api-key', key, 'content-type', 'application/json', ...more],
      body,
      agent,
    });
    return [status, headers['x-svc-error-code'] ?? []].flat().join(' ');
  };
}

test('R4: a key that is revoked, rotated or another one is refused on a connection that a good one opened', async () => {
  const stage = await openModelService();
  const { makeKey, ask: operate } = stage;
  const send = await askerOf(stage);
  const [key, other] = [await makeKey(), await makeKey()];
  const wrong = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`;
  expect([await send(key), await send(key)]).toEqual(['200', '200']);
  expect(await send(wrong)).toBe('401 AUTH_INVALID');
  expect([await send(key), await send(other), await send(key)]).toEqual(['200', '200', '200']);
  const mode = ['x-svc-memory-mode', 'all'] as const;
  expect(await send(key, ...mode)).toBe('422 MODE_INVALID');
  expect([await send(key), await send(key)]).toEqual(['200', '200']);
  await operate(`POST keys/${keyIdOf(key)}/rotate`, { grace_seconds: 0 });
  expect([await send(key), await send(key)]).toEqual(['401 AUTH_STALE', '401 AUTH_STALE']);
  expect([await send(other), await send(other)]).toEqual(['200', '200']);
  await operate(`DELETE keys/${keyIdOf(other)}`);
  expect([await send(other), await send(key)]).toEqual(['401 AUTH_REVOKED', '401 AUTH_STALE']);
});
