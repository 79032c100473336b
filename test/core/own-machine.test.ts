import { expect, test } from 'vitest';
import { isOwnMachine, isOwnMachineUrl } from '../../src/core/settings/own-machine.ts';
import { parseMemory } from '../../src/core/settings/config-schema.ts';
import { parseServiceSettings } from '../../service/src/core/settings.ts';

const OWN = ['localhost', '127.0.0.1', '127.0.0.53', '127.255.255.254', '::1', '[::1]'];
const NOT_OWN = [
  '',
  '0.0.0.0',
  '::',
  '[::]',
  '10.0.0.1',
  '128.0.0.1',
  '127.0.0.1.example.com',
  'localhost.example.com',
  '127.example.com',
];

test.each(OWN)('%s is this machine', (host) => {
  expect(isOwnMachine(host)).toBe(true);
});

test.each(NOT_OWN)('%s is not', (host) => {
  expect(isOwnMachine(host)).toBe(false);
});

test.each([
  ['http://127.0.0.1:8766', true],
  ['http://127.8.9.1:8766/v1', true],
  ['http://[::1]', true],
  ['http://LOCALHOST:1', true],
  // As the parser reads it, which is who is dialled.
  ['http://0x7f.1/', true],
  ['https://127.0.0.1:8766', false],
  ['http://127.0.0.1:8766@memory.example.com', false],
  ['http://localhost:1@memory.example.com/', false],
  ['http://127.0.0.1.example.com', false],
  ['no url', false],
])('the URL %s: %s', (url, isOwn) => {
  expect(isOwnMachineUrl(url)).toBe(isOwn);
});

test.each(['127.0.0.1', '127.0.0.2', 'localhost', '[::1]'])(
  'what a service may listen on without TLS, a client may reach without TLS: %s',
  (host) => {
    const settings = { version: 1, host: host.replaceAll(/[[\]]/g, ''), port: 8766 };
    expect(parseServiceSettings(settings).problems).toEqual([]);
    const baseUrl = `http://${host}:8766`;
    const serviceKey = `svc_live_${'0'.repeat(11)}_${'A'.repeat(43)}`;
    const { problems } = parseMemory({ memory: { kind: 'hosted', baseUrl, serviceKey } }, {});
    expect(JSON.stringify(problems)).not.toContain('baseUrl');
  },
);
