import { expect, test } from 'vitest';
import { Findings, type Environment } from '../../src/core/settings/config-values.ts';
import {
  environmentProxy,
  proxySecretsOf,
  readNetworkProxy,
  withoutCredentials,
} from '../../src/core/settings/network-proxy.ts';

const CORP = 'http://proxy.example.com:8080';

function through(url: string, environment: Environment): string | undefined {
  return environmentProxy(new URL(url), environment)?.origin;
}

function read(proxy: unknown, environment: Environment = {}, baseUrl = 'https://api.example.com') {
  const findings = new Findings();
  const item = proxy === undefined ? {} : { proxy };
  const found = readNetworkProxy({ path: 'upstreams[0]', item, environment, findings }, baseUrl);
  return { found, problems: findings.problems, warnings: findings.warnings };
}

test('each scheme has its variable, in lower and upper case; https falls back to HTTP_PROXY', () => {
  expect(through('https://api.example.com', {})).toBeUndefined();
  for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy']) {
    expect(through('https://api.example.com', { [name]: CORP })).toBe(CORP);
  }
  expect(through('http://gateway.example.com', { HTTP_PROXY: CORP })).toBe(CORP);
  expect(through('http://gateway.example.com', { HTTPS_PROXY: CORP })).toBeUndefined();
  const both = { https_proxy: CORP, HTTPS_PROXY: 'http://other.example.com' };
  expect(through('https://api.example.com', both)).toBe(CORP);
  expect(
    through('https://api.example.com', { https_proxy: '', HTTPS_PROXY: CORP }),
  ).toBeUndefined();
  expect(through('https://api.example.com', { HTTPS_PROXY: 'proxy.example.com:8080' })).toBe(CORP);
  expect(through('https://api.example.com', { ALL_PROXY: CORP })).toBeUndefined();
});

test.each([
  ['api.example.com', true],
  ['example.com', true],
  ['.example.com', true],
  ['*.example.com', true],
  ['EXAMPLE.com', true],
  ['other.test, example.com', true],
  ['other.test example.com', true],
  ['api.example.com:443', true],
  ['*', true],
  ['api.example.com:8443', false],
  ['ple.com', false],
  ['my-api.example.com', false],
  ['', false],
])('NO_PROXY=%s spares api.example.com: %s', (list, isSpared) => {
  for (const name of ['NO_PROXY', 'no_proxy']) {
    const found = through('https://api.example.com', { HTTPS_PROXY: CORP, [name]: list });
    expect(found).toBe(isSpared ? undefined : CORP);
  }
});

test('NO_PROXY spares addresses too', () => {
  const spare = (url: string, list: string) =>
    through(url, { HTTPS_PROXY: CORP, NO_PROXY: list }) === undefined;
  expect(spare('https://10.1.2.3', '10.1.2.3')).toBe(true);
  expect(spare('https://[fd00::1]:8443', '[fd00::1]:8443')).toBe(true);
  expect(spare('https://[fd00::1]', 'fd00::1')).toBe(true);
  expect(spare('https://[fd00::1]', '[fd00::1]:8443')).toBe(false);
});

test.each(['http://127.0.0.1:8080', 'https://localhost', 'http://[::1]:1', 'http://127.9.9.9'])(
  'R22: %s is this machine, and is sent to no proxy, whatever is set',
  (baseUrl) => {
    const environment = { HTTPS_PROXY: CORP, HTTP_PROXY: CORP };
    expect(through(baseUrl, environment)).toBeUndefined();
    expect(read(CORP, environment, baseUrl).found).toBeUndefined();
  },
);

test('the setting beside the base URL comes before the environment', () => {
  const environment = {
    HTTPS_PROXY: CORP,
    NO_PROXY: '*',
    OWN_PROXY: 'http://u:p%40ss@own.example.com',
  };
  expect(read(undefined, { HTTPS_PROXY: CORP }).found?.origin).toBe(CORP);
  expect(read('none', { HTTPS_PROXY: CORP }).found).toBeUndefined();
  expect(read('https://tls.example.com:444', environment).found?.origin).toBe(
    'https://tls.example.com:444',
  );
  const { found } = read({ env: 'OWN_PROXY' }, environment);
  expect(found?.origin).toBe('http://own.example.com');
  expect(found?.authorization).toBe(`Basic ${Buffer.from('u:p@ss').toString('base64')}`);
});

test('R41: a password of a proxy is masked, and no report repeats it', () => {
  const secret = 'http://user:SECRET-pass@proxy.example.com:8080';
  const { problems } = read(secret);
  expect(problems).toMatchObject([{ path: 'upstreams[0].proxy' }]);
  expect(JSON.stringify(problems)).not.toContain('SECRET');
  const wrong = read(undefined, { HTTPS_PROXY: `socks5://user:SECRET-pass@proxy.example.com` });
  expect(wrong.found).toBeUndefined();
  expect(wrong.warnings).toMatchObject([{ origin: 'HTTPS_PROXY' }]);
  expect(JSON.stringify(wrong.warnings)).not.toContain('SECRET');
  expect(read({ env: 'NOT_SET' }).problems).toMatchObject([{ isUnset: true }]);
  expect(proxySecretsOf(read({ env: 'P' }, { P: secret }).found)).toContain('SECRET-pass');
  expect(withoutCredentials(secret)).toBe(CORP);
});

test.each([
  7,
  '',
  'nonsense url',
  'ftp://a.example.com',
  'http://a.example.com/path',
  'http://169.254.169.254',
])('%j is no proxy', (value) => {
  expect(read(value).problems).toHaveLength(1);
});
