import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  listedModels,
  namedModel,
  routeModel,
  type RoutingQuestion,
  withModel,
} from '../../src/core/routing.ts';
import type { TenantProvider } from '../../src/core/providers.ts';

const DIALECT = 'openai_responses';

function provider(name: string, allowedModels: readonly string[], more: object = {}) {
  return {
    providerId: `prov_${name}`,
    name,
    kind: 'custom',
    apiStyle: DIALECT,
    baseUrl: `https://${name}.example`,
    auth: 'bearer',
    headers: [],
    query: [],
    defaultModel: allowedModels[0]?.replace('*', 'x') ?? '',
    allowedModels,
    isEnabled: true,
    version: 1,
    createdAt: 0,
    updatedAt: 0,
    ...more,
  } as TenantProvider;
}

function route(question: Partial<RoutingQuestion>): string {
  const routed = routeModel({
    providers: [],
    dialect: DIALECT,
    model: undefined,
    keyModels: undefined,
    ...question,
  });
  if (routed.kind === 'routed') return `${routed.provider.name} ${routed.model}`;
  return routed.kind === 'not-allowed' ? `not ${routed.allowed.join(',')}` : routed.kind;
}

test('an exact name beats the beginning of one, and a longer beginning a shorter one', () => {
  const providers = [
    provider('all', ['*']),
    provider('short', ['gpt-*']),
    provider('long', ['gpt-5*']),
    provider('exact', ['gpt-5-mini']),
  ];
  expect(route({ providers, model: 'gpt-5-mini' })).toBe('exact gpt-5-mini');
  expect(route({ providers, model: 'gpt-5' })).toBe('long gpt-5');
  expect(route({ providers, model: 'gpt-4' })).toBe('short gpt-4');
  expect(route({ providers, model: 'llama' })).toBe('all llama');
});

test('a provider that is disabled or speaks another dialect has no requests', () => {
  const providers = [
    provider('off', ['m'], { isEnabled: false }),
    provider('chat', ['m'], { apiStyle: 'openai_chat_completions' }),
  ];
  expect(route({ providers, model: 'm' })).toBe('no-provider');
  expect(route({ providers: [...providers, provider('on', ['m'])], model: 'm' })).toBe('on m');
});

test('an unknown model is answered with the names that the caller may use', () => {
  const providers = [provider('one', ['a', 'b-*']), provider('two', ['c'])];
  expect(route({ providers, model: 'z' })).toBe('not a,b-*,c');
  expect(route({ providers, model: 'z', keyModels: ['a', 'b-1', 'd'] })).toBe('not a,b-1');
});

test('the models of a key narrow those of the providers, and never add one', () => {
  const providers = [provider('one', ['a', 'b-*'])];
  expect(route({ providers, model: 'b-1', keyModels: ['b-1*'] })).toBe('one b-1');
  expect(route({ providers, model: 'a', keyModels: ['b-*'] })).toBe('not b-*');
  expect(route({ providers, model: 'c', keyModels: ['c'] })).toBe('not ');
  expect(listedModels(providers, ['a']).map(({ model }) => model)).toEqual(['a']);
  expect(listedModels(providers, undefined).map(({ model }) => model)).toEqual(['a']);
});

test('without a model the default one is taken where one provider serves the dialect', () => {
  const one = [provider('one', ['a', 'b'], { defaultModel: 'b' })];
  expect(route({ providers: one })).toBe('one b');
  expect(route({ providers: one, keyModels: ['a'] })).toBe('not a');
  expect(route({ providers: [...one, provider('two', ['c'])] })).toBe('no-default');
});

test('a second model is found in every spelling, at every place', () => {
  const read = (text: string) => namedModel(Buffer.from(text));
  expect(read('{"model":"a","input":[]}')).toEqual({ kind: 'named', model: 'a' });
  expect(read(String.raw`{"mod\u0065l":"\u0061"}`)).toEqual({ kind: 'named', model: 'a' });
  expect(read('{"input":{"model":"b"},"model":"a"}')).toEqual({ kind: 'named', model: 'a' });
  for (const second of [
    'model',
    'Model',
    'MODEL',
    String.raw`\u006dodel`,
    String.raw`mode\u004c`,
  ]) {
    expect(read(`{"model":"a","x":[1],"${second}":"b"}`), second).toEqual({ kind: 'ambiguous' });
    expect(read(`{"${second}":"b","x":[1],"model":"a"}`), second).toEqual({ kind: 'ambiguous' });
  }
  expect(read('{"Model":"b"}')).toEqual({ kind: 'ambiguous' });
  for (const value of ['null', '1', '["a"]', '{"a":"b"}', '""', 'true']) {
    expect(read(`{"model":${value}}`), value).toEqual({ kind: 'ambiguous' });
  }
  expect(read('{}')).toEqual({ kind: 'missing' });
  for (const text of ['', '[]', 'null', '{', '{"model":"a"', '{"model":"a"}x', "{'model':'a'}"]) {
    expect(read(text), text).toEqual({ kind: 'unreadable' });
  }
});

test('the model of a body is the one that JSON.parse reads, with and without its list skipped', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), (fields, model) => {
      const text = JSON.stringify({ ...fields, model: `m${model}`, list: [{ model: 'no' }] });
      const bytes = Buffer.from(text);
      const keys = Object.keys(fields).filter((key) => key.toLowerCase() === 'model');
      fc.pre(keys.every((key) => key === 'model'));
      const start = text.lastIndexOf('[{"model":"no"}]');
      const before = Buffer.byteLength(text.slice(0, start));
      const skipped = { start: before, end: before + '[{"model":"no"}]'.length };
      const expected = { kind: 'named', model: JSON.parse(text).model };
      expect(namedModel(bytes)).toEqual(expected);
      expect(namedModel(bytes, skipped)).toEqual(expected);
    }),
  );
});

test('the default model is spliced in, and every other byte stays', () => {
  const spliced = (text: string) => withModel(Buffer.from(text), 'm/1').toString();
  expect(spliced(' { "a" : 1.0 }')).toBe(' {"model":"m/1", "a" : 1.0 }');
  expect(spliced('{ }')).toBe('{"model":"m/1" }');
});
