import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, dictionary, jsonValue, property, string } from 'fast-check';
import { expect, test } from 'vitest';
import { parseEntries, sourceOfFacts } from '../../src/core/settings/catalog-entries.ts';
import {
  isRoutable,
  type Provider,
  providersOf,
  searchProviders,
} from '../../src/core/settings/catalog.ts';
import { parseBaseUrl, UPSTREAM_NAME } from '../../src/core/settings/config-upstreams.ts';

const path = join(import.meta.dirname, '../../src/adapters/catalog/catalog-snapshot.json');
const SNAPSHOT: unknown = JSON.parse(readFileSync(path, 'utf8'));
const providers = providersOf(parseEntries(SNAPSHOT) ?? {});

function named(id: string): Provider | undefined {
  return providers.find((provider) => provider.id === id);
}

/** So many harmless entries that a list with `others` among them is a catalog. */
function feed(others: Record<string, unknown>): Record<string, unknown> {
  const plain = Array.from({ length: 30 }, (_, at) => [`p${at}`, { name: `P ${at}`, env: [] }]);
  return { ...Object.fromEntries(plain), ...others };
}

test('the snapshot is a catalog of 200 providers, small enough for the package', () => {
  expect(providers.length).toBeGreaterThan(200);
  expect(readFileSync(path).length).toBeLessThan(150_000);
  expect(providers.filter(isRoutable).length).toBeGreaterThan(190);
  for (const provider of providers.filter(isRoutable)) {
    expect(provider.id).toMatch(UPSTREAM_NAME);
    expect(parseBaseUrl(provider.baseUrl, provider.allowPrivate)).toHaveProperty('url');
  }
});

test('the API style is inferred from the package that talks to the provider', () => {
  expect(named('anthropic')).toMatchObject({
    apiStyles: ['anthropic_messages'],
    auth: 'x-api-key',
  });
  expect(named('openai')?.apiStyles).toEqual(['openai_responses', 'openai_chat_completions']);
  expect(named('minimax')).toMatchObject({
    apiStyles: ['anthropic_messages'],
    baseUrl: 'https://api.minimax.io/anthropic/v1',
    keyEnv: 'MINIMAX_API_KEY',
  });
  expect(named('meta')?.apiStyles).toEqual(['openai_responses', 'openai_chat_completions']);
  expect(named('fireworks-ai')).toMatchObject({ apiStyles: ['openai_chat_completions'] });
  // It may speak anything: the person is asked.
  expect(named('merge-gateway')?.apiStyles).toEqual([]);
});

test('providers that a catalog has no address for get the one they document', () => {
  for (const id of ['google', 'cerebras', 'togetherai', 'xai', 'mistral', 'groq', 'cohere']) {
    expect(named(id)?.baseUrl).toMatch(/^https:/);
  }
  expect(named('google')?.keyEnvs).toEqual([
    'GEMINI_API_KEY',
    'GOOGLE_API_KEY',
    'GOOGLE_GENERATIVE_AI_API_KEY',
  ]);
});

test('an entry without an address, with a place in it, or without a key is shown and not offered', () => {
  for (const id of ['perplexity', 'databricks', 'snowflake-cortex', 'neon']) {
    expect(named(id)).toMatchObject({ baseUrl: undefined });
  }
  const parsed = providersOf(
    parseEntries(
      feed({ nokey: { name: 'No key', env: ['REGION'], api: 'https://a.example.com' } }),
    ) ?? {},
  );
  const nokey = parsed.find(({ id }) => id === 'nokey');
  expect(nokey).toMatchObject({ baseUrl: 'https://a.example.com', keyEnv: '' });
  expect(nokey !== undefined && isRoutable(nokey)).toBe(false);
});

test('R35: a catalog may name this machine, and nothing else that is private', () => {
  const api = [
    'http://127.0.0.1:1337/v1',
    'http://192.168.1.2/v1',
    'https://10.0.0.1/v1',
    'https://169.254.169.254/latest',
    'https://user:secret@api.example.com/v1',
    'http://api.example.com/v1',
    'javascript:alert(1)',
  ];
  const given = feed(
    Object.fromEntries(api.map((url, at) => [`u${at}`, { name: 'U', env: ['U_KEY'], api: url }])),
  );
  const found = providersOf(parseEntries(given) ?? {}).filter(({ id }) => /^u\d/.test(id));
  expect(found.map(({ baseUrl }) => baseUrl !== undefined)).toEqual([
    true,
    ...Array(6).fill(false),
  ]);
  expect(found[0]?.allowPrivate).toBe(true);
});

test('what svc knows by itself beats what a catalog says', () => {
  const given = feed({
    openai: { name: 'OpenAI', env: ['EVIL_KEY'], api: 'https://evil.example.com' },
  });
  const [openai] = providersOf(parseEntries(given) ?? {}).filter(({ id }) => id === 'openai');
  expect(openai).toMatchObject({ baseUrl: 'https://api.openai.com/v1', keyEnv: 'OPENAI_API_KEY' });
});

test('what is no catalog is none: an error page, another format, more wrong than right', () => {
  for (const value of [undefined, null, 'no', [], {}, { error: 'x' }, { providers: [] }]) {
    expect(parseEntries(value)).toBeUndefined();
  }
  const wrong = Array.from({ length: 40 }, (_, at): [string, unknown] => [`x${at}`, { name: 5 }]);
  expect(parseEntries(feed(Object.fromEntries(wrong)))).toBeUndefined();
});

test('entries with texts that steer a screen, are too long or of another type are left out', () => {
  const given = feed({
    'a b': { name: 'A', env: [] },
    __proto: { name: 'x\u001b[2J', env: [] },
    bidi: { name: 'x\u202ey', env: [] },
    long: { name: 'x'.repeat(61), env: [] },
    kept: {
      name: 'Käptn & Co.',
      env: ['K_KEY', 'not a name', 7],
      api: 'https://k.example.com/v1\n',
      npm: { x: 1 },
      models: { good: {}, 'b\u0007d': {}, old: { status: 'deprecated' } },
    },
  });
  const entries = parseEntries(given);
  expect(Object.keys(entries ?? {}).filter((id) => !/^p\d/.test(id))).toEqual(['kept']);
  expect(entries?.['kept']).toEqual({
    name: 'Käptn & Co.',
    env: ['K_KEY'],
    models: ['good'],
    facts: {},
  });
});

test('the limits and prices of a model are read where they are numbers, and read again from a copy', () => {
  const limit = { context: 400_000, input: 272_000, output: 128_000 };
  const cost = { input: 1.25, output: 10, cache_read: 0.125 };
  const given = feed({
    maker: {
      name: 'Maker',
      env: [],
      models: {
        whole: { limit, cost },
        free: { limit: { context: 8_192, output: 4_096 }, cost: { input: 0, output: 0 } },
        odd: { limit: { context: 'many', output: -1 }, cost },
      },
    },
  });
  const facts = parseEntries(given)?.['maker']?.facts ?? {};
  expect(facts).toEqual({
    whole: {
      windowTokens: 400_000,
      inputTokensMax: 272_000,
      outputTokensMax: 128_000,
      price: { input: 1.25, output: 10, cacheRead: 0.125 },
    },
    free: { windowTokens: 8_192, inputTokensMax: 8_192, outputTokensMax: 4_096 },
  });
  const copied = Object.entries(facts).map(([id, one]) => [id, sourceOfFacts(one)]);
  const copy = feed({ maker: { name: 'Maker', env: [], facts: Object.fromEntries(copied) } });
  expect(parseEntries(JSON.parse(JSON.stringify(copy)))?.['maker']?.facts).toEqual(facts);
});

test('whatever JSON comes, the parser gives entries of the form or nothing', () => {
  assert(
    property(dictionary(string(), jsonValue()), (others) => {
      for (const entry of Object.values(parseEntries(feed(others)) ?? {})) {
        expect(entry.name).toMatch(/^[^\p{Cc}\p{Cf}]{1,60}$/u);
        expect(Array.isArray(entry.models) && Array.isArray(entry.env)).toBe(true);
      }
    }),
  );
});

test('a search finds by id, name, address and model, the closest first', () => {
  const first = (term: string) => searchProviders(providers, term)[0];
  expect(first('openai')?.provider.id).toBe('openai');
  expect(first('together')?.provider.id).toBe('togetherai');
  expect(first('api.x.ai')?.provider.id).toBe('xai');
  expect(first('Fireworks AI')?.provider.id).toBe('fireworks-ai');
  expect(first('claude-opus')).toMatchObject({ provider: { id: 'anthropic' } });
  expect(first('claude-opus')?.model).toMatch(/^claude-opus/);
  expect(searchProviders(providers, 'no-such-provider')).toEqual([]);
  // What cannot be configured comes after all that can.
  const all = searchProviders(providers, '');
  const usable = all.map(({ provider }) => isRoutable(provider));
  expect(usable.lastIndexOf(true)).toBeLessThan(usable.indexOf(false));
});
