import { expect, test } from 'vitest';
import { parseServiceSettings, SERVICE_DEFAULTS } from '../../src/core/settings.ts';

const TLS = { cert: '/a.pem', key: '/b.pem' };

test.each([
  ['as they are made', {}],
  ['on every address, with TLS', { host: '0.0.0.0', tls: TLS }],
  ['on every address, behind a proxy', { host: '::', behindProxy: true }],
  ['with limits', { requestsPerMinute: 600, spaceBytesMax: 1024, drainMs: 0 }],
  ['without a limit', { requestsPerMinute: null }],
])('settings are taken %s', (_, more) => {
  const value = { ...SERVICE_DEFAULTS, ...more };
  expect(parseServiceSettings(value)).toEqual({ settings: value, problems: [] });
});

test.each([
  ['plain HTTP beyond loopback', { host: '0.0.0.0' }],
  [
    'plain HTTP beyond loopback, with a proxy that is not',
    { host: '10.0.0.1', behindProxy: false },
  ],
  ['a port that is none', { port: 65_536 }],
  ['a certificate without its key', { tls: { cert: '/a.pem' } }],
  ['a rate of nothing', { requestsPerMinute: 0 }],
  ['a host with a blank', { host: 'a b' }],
  ['a setting that does not exist', { behindproxy: true }],
  ['another version', { version: 2 }],
])('%s is refused, and the value is not repeated', (_, more) => {
  const { settings, problems } = parseServiceSettings({ ...SERVICE_DEFAULTS, ...more });
  expect(settings).toBe(undefined);
  expect(problems).not.toEqual([]);
  expect(problems.join()).not.toMatch(/a b|65536|0\.0\.0\.0/);
});
