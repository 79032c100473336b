import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { pathTokenOf } from '../../src/core/http/local-token.ts';
import { rememberOwnSecrets } from '../../src/core/redaction/own-secrets.ts';
import { maskSecrets } from '../../src/core/redaction/redaction.ts';
import { ownSecretsOf } from '../../src/core/settings/own-secrets.ts';
import { upstreamSettings } from '../support/upstream.ts';

/** Nothing about it looks like a key. */
const OWN = 'walrus-parade/north+gate';

test('R41: a secret of the configuration is masked by its value, in every spelling', () => {
  expect(maskSecrets(`the gate is ${OWN} today`).masked).toBe(0);
  rememberOwnSecrets([OWN]);
  for (const text of [
    `the gate is ${OWN} today`,
    `https://example.com/a?k=${encodeURIComponent(OWN)}&b=1`,
    JSON.stringify({ a: JSON.stringify({ b: OWN.replaceAll('/', String.raw`\/`) }) }),
    `x${OWN}x${OWN}`,
  ]) {
    const { text: kept, masked } = maskSecrets(text);
    expect(masked, text).toBeGreaterThan(0);
    expect(kept).not.toMatch(/walrus|north/);
  }
});

test.each([':', 'u:', 'us:', 'user:'])('R41: it is masked in base64 behind %j', (before) => {
  rememberOwnSecrets([OWN]);
  for (const encoding of ['base64', 'base64url'] as const) {
    const encoded = Buffer.from(`${before}${OWN}:x`).toString(encoding);
    const { text, masked } = maskSecrets(`the login ${encoded} is kept`);
    expect(masked).toBe(1);
    expect(Buffer.from(text.replaceAll(/[^\w+/=-]/g, ''), 'base64').toString()).not.toContain(
      'walrus',
    );
  }
});

test('R41: whatever a key looks like, it is never readable in what comes out', () => {
  const ownSecret = fc.stringMatching(/^[!-~]{12,40}$/);
  fc.assert(
    fc.property(ownSecret, fc.nat(3), (secret, depth) => {
      rememberOwnSecrets([secret]);
      let text = `before ${secret} after`;
      for (let times = 0; times < depth; times += 1) text = JSON.stringify({ text });
      expect(maskSecrets(text).text).not.toContain(secret);
    }),
    { numRuns: 100 },
  );
});

test('a word that stands for no key is no secret', () => {
  rememberOwnSecrets(['ollama', 'x', '']);
  expect(maskSecrets('ollama runs x on this machine').masked).toBe(0);
});

test('R41: provider keys, header values, the service key and both local tokens are secrets', () => {
  const upstreams = [
    upstreamSettings({
      providerKey: 'one',
      headers: { 'x-gateway-token': 'Bearer two', 'anthropic-version': '2023-06-01' },
      query: { key: 'three', region: 'eu' },
    }),
  ];
  const memory = { kind: 'hosted', baseUrl: '', serviceKey: 'four', allowPrivate: false } as const;
  const secrets = ownSecretsOf({ upstreams, memory, localToken: 'five' });
  expect(secrets).toEqual(['one', 'two', 'three', 'four', 'five', pathTokenOf('five')]);
});
