import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classOf, mayResolve } from '../../src/adapters/network/addresses.ts';
import { parseBaseUrl } from '../../src/core/settings/config-upstreams.ts';
import { classOfHost } from '../../src/core/settings/own-machine.ts';
import { hostile } from '../support/hostile.ts';

const isTaken = (url: string, allowPrivate = false): boolean =>
  'url' in parseBaseUrl(url, allowPrivate);

describe('R45: a base URL that can only be refused when dialled is refused when configured', () => {
  test.each([
    'https://localhost.',
    'https://LOCALHOST.',
    'https://a.localhost.',
    'https://127.0.0.1.',
    'https://2130706433',
    'https://0177.0.0.1',
    'https://0x7f.1',
    'https://127.1',
    'https://[::1]',
    'https://[::ffff:127.0.0.1]',
    'https://[::ffff:a00:1]',
    'https://[64:ff9b::7f00:1]',
    'https://[2002:7f00:1::]',
    'https://[2001:0:7f00:1::]',
    'https://[::7f00:1]',
    'https://[fe80::1]',
    'https://[fec0::1]',
    'https://[fd00:ec2::254]',
    'https://169.254.169.254',
    'https://[::ffff:169.254.169.254]',
    'https://100.100.100.200',
    'https://168.63.129.16',
    'https://metadata.google.internal',
    'https://metadata.google.internal.',
    'https://metadata.goog',
    'https://0',
    'https://0.0.0.0',
    'https://255.255.255.255',
    'https://224.0.0.1',
    'https://box.lan',
    'https://gateway',
    'https://printer.local.',
  ])('%s', (url) => {
    expect(isTaken(url)).toBe(false);
    expect(mayResolve(new URL(url).hostname, { allowPrivate: false, isSecure: true })).toBe(false);
  });

  test.each([
    'https://169.254.169.254',
    'https://[::ffff:169.254.169.254]',
    'https://[64:ff9b::7f00:1]',
    'https://[fd00:ec2::254]',
    'https://100.100.100.200',
    'https://metadata.google.internal',
    'http://0.0.0.0:8080',
  ])('%s, whatever is allowed', (url) => {
    expect(isTaken(url, true)).toBe(false);
  });

  test('public hosts are taken, and private ones where the person allows them', () => {
    const open = ['https://api.anthropic.com', 'https://1.1.1.1', 'https://[2606:4700:4700::1111]'];
    for (const url of [...open, 'https://local.example.com', 'https://example.com.']) {
      expect(isTaken(url), url).toBe(true);
    }
    const own = ['http://localhost:11434', 'http://127.0.0.1', 'http://[::1]:1', 'http://10.1.2.3'];
    for (const url of [...own, 'http://[::ffff:127.0.0.1]', 'http://[fd12::1]', 'http://ollama']) {
      expect([isTaken(url), isTaken(url, true)], url).toEqual([false, true]);
    }
  });

  test('whatever the address, what passes here may be dialled', () => {
    const places = { public: 'public', 'this machine': 'own', 'a private network': 'own' } as const;
    const check = (host: string, address: string): void => {
      const found = classOf(address);
      const expected = found === 'never allowed' ? 'never' : places[found];
      // Reserved for protocols: refused a little more widely here.
      if (/^2001:(?:1?[0-9a-f]{0,2}:|:)/.test(address)) return;
      expect(classOfHost(host), address).toBe(expected);
    };
    fc.assert(
      fc.property(fc.ipV4(), (address) => check(address, address)),
      { numRuns: 2_000 },
    );
    const near = fc
      .tuple(
        fc.constantFrom(
          '::',
          '::ffff:',
          '64:ff9b::',
          '2002:',
          'fd00:',
          'fe80::',
          '2606::',
          'ff02::',
        ),
        fc.nat(0xffff),
        fc.nat(0xffff),
      )
      .map(([prefix, high, low]) => `${prefix}${high.toString(16)}:${low.toString(16)}`)
      .map((text) => (text.includes('::') ? text : `${text}::1`));
    const written = (address: string): string => new URL(`http://[${address}]`).hostname;
    for (const addresses of [fc.ipV6(), near]) {
      fc.assert(
        fc.property(addresses, (address) => check(written(address), written(address).slice(1, -1))),
        { numRuns: 1_000 },
      );
    }
  });
});

const SSRF = hostile('ssrf-urls.json');

test.skipIf(SSRF.isMissing)(`R45: a public list of hostile URLs${SSRF.note}`, () => {
  const urls = SSRF.read() as string[];
  let refused = 0;
  for (const url of urls) {
    for (const allowPrivate of [false, true]) {
      const parsed = parseBaseUrl(url, allowPrivate);
      if (!('url' in parsed)) {
        refused += 1;
        continue;
      }
      const { hostname, protocol } = new URL(parsed.url);
      const rule = { allowPrivate, isSecure: protocol === 'https:' };
      // Plain http to a public address is refused when dialled: with "allowPrivate" a name may be private.
      const isJudgedLater = allowPrivate && !rule.isSecure && classOfHost(hostname) === 'public';
      if (!isJudgedLater) expect(mayResolve(hostname, rule), url).toBe(true);
    }
  }
  expect(refused).toBeGreaterThan(urls.length / 2);
});
