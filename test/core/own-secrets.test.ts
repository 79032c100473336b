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

test.each([
  ['one that begins another one', 'sv9-alpha', 'sv9-alpha-beta-gamma', 'beta-gamma'],
  ['one that ends within another one', 'sv9-first-half', 'half-and-second', 'and-second'],
])('of two secrets, %s, no part is left', (_name, one, other, part) => {
  rememberOwnSecrets([one, other]);
  const text = `It is ${one.endsWith('half') ? 'sv9-first-half-and-second' : other}, and no more.`;
  const masked = maskSecrets(text);
  expect(masked).toEqual({ text: 'It is [masked: svc-key], and no more.', masked: 1 });
  expect(masked.text).not.toContain(part);
});

const KEY_LINES = ['MIIEpAIBAAKCAQEA', 'Zq1', 'x7Lw'].map((start) => start.padEnd(64, 'aB3dE5gH7'));

test.each([
  ['PEM', '-----BEGIN RSA PRIVATE KEY-----', '-----END RSA PRIVATE KEY-----'],
  [
    'PuTTY',
    'PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPrivate-Lines: 3',
    `Private-MAC: ${'0a1b2c3d'.repeat(8)}`,
  ],
])(
  'a private key in a %s file is masked whole, also where it has an own secret in it',
  (_n, begin, end) => {
    rememberOwnSecrets(['Zq1a']);
    const file = [begin, ...KEY_LINES, end].join('\n');
    const { text } = maskSecrets(`The key:\n${file}\nThat was it.`);
    expect(text).toMatch(/^The key:\n\[masked: [\w-]+\]\nThat was it\.$/);
  },
);
