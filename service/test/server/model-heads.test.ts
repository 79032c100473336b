import { Agent } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { promptOf } from '../../../test/support/dialect-wire.ts';
import { keyIdOf } from '../support/memory-service.ts';
import { type ModelService, openModelService } from '../support/model-service.ts';
import { ask } from '../../../test/support/sockets.ts';

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
