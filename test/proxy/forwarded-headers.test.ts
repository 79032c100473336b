import { expect, test } from 'vitest';
import type { RawHeaders } from '../../src/core/http/header-rules.ts';
import type { UpstreamSettings } from '../../src/core/settings/settings.ts';
import type { Upstream } from '../../src/ports/upstream.ts';
import type { ClientRequest } from '../../src/proxy/dependencies.ts';
import { sendForm } from '../../src/proxy/forward.ts';

const SETTINGS: UpstreamSettings = {
  name: 'provider',
  apiStyle: 'anthropic_messages',
  baseUrl: 'https://provider.example',
  providerKey: 'key-one',
  auth: 'x-api-key',
  headers: {},
  query: {},
  allowPrivate: false,
};

const CLIENT: RawHeaders = ['x-api-key', 'svc_local_token', 'anthropic-version', '2023-06-01'];

/** The headers that the provider gets. */
async function forwarded(
  settings: UpstreamSettings,
  more: Partial<ClientRequest> = {},
): Promise<readonly string[]> {
  let sent: readonly string[] = [];
  const upstream: Upstream = {
    send: async ({ headers }) => {
      sent = [...headers];
      return { status: 200, headers: [], deliver: () => {}, resume: () => {}, abort: () => {} };
    },
    warm: () => {},
    close: async () => {},
  };
  const request: ClientRequest = {
    id: 'req_1',
    route: { kind: 'model', dialect: 'anthropic_messages' },
    method: 'POST',
    target: '/v1/messages',
    headers: CLIENT,
    body: Buffer.from('{}'),
    startedAt: 0,
    ...more,
  };
  const { signal } = new AbortController();
  await sendForm(undefined, { configured: { settings, upstream }, request, signal });
  return sent;
}

test('R14: a changed key is sent at once to headers that came before, and the old one never again', async () => {
  expect((await forwarded(SETTINGS)).slice(-2)).toEqual(['x-api-key', 'key-one']);
  const rotated = { ...SETTINGS, providerKey: 'key-two' };
  const sent = await forwarded(rotated);
  expect(sent.slice(-2)).toEqual(['x-api-key', 'key-two']);
  expect(sent).not.toContain('key-one');
  expect(sent).not.toContain('svc_local_token');
});

test('the encoding of one body is not sent with the next one', async () => {
  const encoded = { bytes: Buffer.from('x'), encoding: 'zstd' } as const;
  expect(await forwarded(SETTINGS, { encoded })).toContain('content-encoding');
  expect(await forwarded(SETTINGS)).not.toContain('content-encoding');
});
