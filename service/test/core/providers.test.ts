import { expect, test } from 'vitest';
import {
  customNamesProblem,
  findClash,
  isSecretValue,
  presetOf,
  readProviderBase,
  takesModel,
} from '../../src/core/providers.ts';
import { parseEntries } from '../../../src/core/settings/catalog-entries.ts';
import { providersOf } from '../../../src/core/settings/catalog.ts';
import { providerOf } from '../support/service-control.ts';

test.each([
  ['https://api.example.com', 'https://api.example.com'],
  ['https://api.example.com/v1/', 'https://api.example.com'],
  ['https://api.example.com:443/openai/v1', 'https://api.example.com/openai/v1'],
  ['https://api.example.com:8443', 'https://api.example.com:8443'],
])('R45: %s is a base URL', (text, url) => {
  expect(readProviderBase(text)).toEqual({ url });
});

test.each([
  '',
  'http://api.example.com',
  'https://user@api.example.com',
  'https://user:secret@api.example.com',
  'https://127.0.0.1',
  'https://8.8.8.8',
  'https://0177.0.0.1',
  'https://0x7f.1',
  'https://134744072',
  'https://8.8.8.8.',
  'https://[::1]',
  'https://[::ffff:8.8.8.8]',
  'https://[2606:4700::1111]',
  'https://localhost',
  'https://localhost.',
  'https://gateway',
  'https://gateway.internal',
  'https://metadata.google.internal',
  'https://api.example.com:80',
  'https://api.example.com:22',
  'https://api.example.com:0',
  'https://api.example.com?x=1',
  'https://api.example.com#x',
  'https://api.example.com/a%2fb',
  'https://api.example.com\\@evil.example',
  ' https://api.example.com',
  'https://api.example.com/\r\nx: y',
  'file:///etc/passwd',
])('R45: %j is refused as a base URL, and is not repeated', (text) => {
  const read = readProviderBase(text);
  expect(read).toEqual({ problem: expect.any(String) });
  if (text !== '') expect(JSON.stringify(read)).not.toContain(text);
});

test.each([
  ['http://api.example.com', /https:\/\//],
  ['https://user@api.example.com', /without credentials/],
  ['https://8.8.8.8', /a certificate needs a host name/],
  ['https://gateway.internal', /egress\.allow in service\.json/],
  ['https://metadata.google.internal', /reserved/],
  ['https://api.example.com:8000', /egress\.ports in service\.json/],
])('the refusal of %s says what to do', (text, what) => {
  expect(readProviderBase(text)).toEqual({ problem: expect.stringMatching(what) });
});

// spec: 2.3-discovery-only
test('a preset comes from the catalog, but not from this machine, over http, or without a key', () => {
  const entry = { name: 'N', env: ['N_API_KEY'], models: [] };
  const filler = Array.from({ length: 20 }, (_, at) => [`filler-${at}`, entry]);
  const entries = parseEntries({
    ...Object.fromEntries(filler),
    hosted: { ...entry, api: 'https://models.example.com/v1' },
    own: { ...entry, api: 'http://127.0.0.1:9/v1' },
    place: { ...entry, api: 'https://${ACCOUNT}.example.com/v1' },
    keyless: { ...entry, env: [], api: 'https://free.example.com/v1' },
    port: { ...entry, api: 'https://models.example.com:1234/v1' },
  });
  const catalog = providersOf(entries ?? {});
  const chat = 'openai_chat_completions';
  expect(presetOf(catalog, 'hosted', chat)).toEqual({
    baseUrl: 'https://models.example.com',
    auth: 'bearer',
  });
  expect(presetOf(catalog, 'anthropic', 'anthropic_messages')).toEqual({
    baseUrl: 'https://api.anthropic.com',
    auth: 'x-api-key',
  });
  for (const id of ['own', 'place', 'keyless', 'port', 'filler-1', 'ollama', 'lmstudio', 'none']) {
    expect([id, presetOf(catalog, id, chat)]).toEqual([id, undefined]);
  }
  expect(presetOf(catalog, 'anthropic', chat)).toBe(undefined);
});

test('equal entries of two enabled providers of one style clash, and nothing else does', () => {
  const one = providerOf({ allowedModels: ['gpt-5', 'gpt-*'] });
  const other = providerOf({ providerId: 'prov_b', allowedModels: ['o3', 'gpt-*'] });
  expect(findClash(one, [one, other])).toEqual({ other, entry: 'gpt-*' });
  expect(findClash(one, [one])).toBe(undefined);
  expect(findClash({ ...one, isEnabled: false }, [other])).toBe(undefined);
  expect(findClash(one, [{ ...other, isEnabled: false }])).toBe(undefined);
  expect(findClash(one, [{ ...other, apiStyle: 'anthropic_messages' }])).toBe(undefined);
  expect(findClash(one, [{ ...other, allowedModels: ['gpt-5-*', 'gpt-'] }])).toBe(undefined);
});

test('an entry takes one model in, or all that begin with what stands before its star', () => {
  expect(['gpt-5', 'gpt-*', '*'].map((entry) => takesModel(entry, 'gpt-5'))).toEqual([
    true,
    true,
    true,
  ]);
  expect(['gpt-', 'gpt-5-*', 'GPT-5'].map((entry) => takesModel(entry, 'gpt-5'))).toEqual([
    false,
    false,
    false,
  ]);
});

test('a value that takes the credential in is a secret', () => {
  expect(['Bearer $API_KEY', '$API_KEY', 'api'].map(isSecretValue)).toEqual([true, true, false]);
});

test('headers that frame a message, of svc, or named twice are refused', () => {
  expect(customNamesProblem('headers', ['x-team', 'x-key'])).toBe(undefined);
  const wrong = [['host'], ['Content-Length'], ['x-svc-memory-mode'], ['a b'], ['x:y'], ['X', 'x']];
  for (const names of wrong) {
    expect([names, customNamesProblem('headers', names)]).toEqual([names, expect.any(String)]);
  }
  expect(customNamesProblem('query', ['api-version', 'key'])).toBe(undefined);
});
