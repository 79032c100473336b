import { expect, test } from 'vitest';
import { mayDial, mayResolve } from '../../src/adapters/network/addresses.ts';

const PUBLIC_ONLY = { allowPrivate: false, isSecure: true };
const PRIVATE_TOO = { allowPrivate: true, isSecure: true };
const PLAIN_HTTP = { allowPrivate: true, isSecure: false };

const GLOBAL = ['8.8.8.8', '160.79.104.10', '2606:4700::6810:1', '2607:6bc0::10', '::ffff:8.8.8.8'];
const PRIVATE = [
  '127.0.0.1',
  '127.255.255.254',
  '10.0.0.5',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '::1',
  'fc00::1',
  'fd12:3456::1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
];
const NEVER = [
  '169.254.169.254',
  '169.254.0.1',
  'fe80::1',
  'fe80::1%eth0',
  '168.63.129.16',
  '100.100.100.200',
  'fd00:ec2::254',
  'fd20:ce::254',
  '::ffff:169.254.169.254',
  '0.0.0.0',
  '0.1.2.3',
  '::',
  '224.0.0.1',
  '255.255.255.255',
  '240.0.0.1',
  '192.0.0.1',
  '192.0.2.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '192.88.99.1',
  'ff02::1',
  'fec0::1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::a00:1',
  '2002:7f00:1::',
  '2001::1',
  '2001:db8::1',
  '3fff::1',
  '5f00::1',
  '100::1',
  '::7f00:1',
  '::ffff:0:7f00:1',
  'not an address',
  '',
];

test('R35: without leave only global addresses are dialled', () => {
  expect(GLOBAL.filter((address) => !mayDial(address, PUBLIC_ONLY))).toEqual([]);
  expect([...PRIVATE, ...NEVER].filter((address) => mayDial(address, PUBLIC_ONLY))).toEqual([]);
});

test('R35: allowPrivate opens private and loopback addresses, never link-local or metadata', () => {
  expect([...GLOBAL, ...PRIVATE].filter((address) => !mayDial(address, PRIVATE_TOO))).toEqual([]);
  expect(NEVER.filter((address) => mayDial(address, PRIVATE_TOO))).toEqual([]);
});

test('R22: without TLS only private and loopback addresses are dialled', () => {
  expect(PRIVATE.filter((address) => !mayDial(address, PLAIN_HTTP))).toEqual([]);
  expect([...GLOBAL, ...NEVER].filter((address) => mayDial(address, PLAIN_HTTP))).toEqual([]);
});

test('R35: a name that can only be local is not looked up', () => {
  const local = [
    'localhost',
    'localhost.',
    'gateway',
    'a.localhost',
    'printer.local',
    'x.internal',
  ];
  expect(local.filter((name) => mayResolve(name, PUBLIC_ONLY))).toEqual([]);
  expect(local.filter((name) => !mayResolve(name, PRIVATE_TOO))).toEqual([]);
  expect(mayResolve('api.anthropic.com', PUBLIC_ONLY)).toBe(true);
});

test('R35: every spelling of a loopback address in a URL is judged as that address', () => {
  const spellings = [
    '127.0.0.1',
    '0x7f.1',
    '0x7f000001',
    '2130706433',
    '0177.0.0.1',
    '127.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[0:0:0:0:0:0:0:1]',
    '\uff11\uff12\uff17.\uff10.\uff10.\uff11',
    '127\u30020\u30020\u30021',
  ];
  const passed = spellings.filter((host) =>
    mayResolve(new URL(`https://${host}/`).hostname, PUBLIC_ONLY),
  );
  expect(passed).toEqual([]);
});
