import { assert, jsonValue, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FAULTS } from '../../../src/core/memory-api/faults.ts';
import { parseShape, type Shape } from '../../../src/core/memory-api/shape.ts';
import { CONSOLE_ROUTES, OPERATIONS } from '../../src/server/console/console.ts';
import { NO_LIMITS } from '../../src/core/plans.ts';
import { nameOf, ODDITIES, placesIn, withChange } from '../../../test/support/contract-changes.ts';
import { consoleContract, schemaOf } from '../../../test/support/memory-api.ts';

// The published document is the oracle: a body that it takes the parsers take, and no other.

interface Subject {
  readonly schema: string;
  readonly shape: Shape<unknown>;
  readonly sample: Readonly<Record<string, unknown>>;
}

const START = '/v1/svc/console/';

interface DocumentedOperation {
  readonly operationId: string;
  readonly requestBody?: unknown;
}

/** Operations of the document, with their method and path. */
const DOCUMENTED = Object.entries(
  (consoleContract as { paths: Record<string, Record<string, DocumentedOperation>> }).paths,
).flatMap(([path, methods]) =>
  Object.entries(path.startsWith(START) ? methods : {}).map(([method, row]) => ({
    ...row,
    method: method.toUpperCase(),
    path: path.slice(START.length),
  })),
);

const LIMITS = Object.fromEntries(Object.keys(NO_LIMITS).map((name) => [name, 7]));

/** A whole body of each schema. The purge has its own test. */
const SAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  KeyCreate: {
    name: 'laptop',
    scopes: ['read', 'receipt:read'],
    spaces: ['project/*', 'global'],
    allowed_models: ['gpt-5', 'claude-*'],
    expires_at: '2030-05-01T12:00:00Z',
    tokens_per_day: 1000,
    tokens_per_month: null,
  },
  KeyRotate: { grace_seconds: 604_800 },
  TenantCreate: { tenant_id: 'acme-2', name: 'Acme, Inc.', plan: 'team' },
  TenantUpdate: { name: 'Acme', plan: 'team', status: 'suspended' },
  ProviderCreate: {
    name: 'gateway',
    kind: 'custom',
    preset_id: 'open-ai_2',
    api_style: 'openai_responses',
    base_url: 'https://models.example.com',
    auth: 'default',
    credential: 'sk-1',
    custom_headers: [{ name: 'x-team', value: 'a b' }],
    custom_query: [{ name: 'key', value: '$API_KEY' }],
    default_model: 'gpt-5',
    allowed_models: ['gpt-*'],
    enabled: false,
  },
  ProviderUpdate: {
    version: 3,
    name: 'gateway',
    credential: 'sk-1',
    custom_headers: [{ name: 'x-team', value: 'a' }],
    custom_query: [],
    default_model: 'gpt-5',
    allowed_models: ['gpt-5'],
    enabled: true,
  },
  SettingsUpdate: {
    compression_mode: 'shadow',
    input_budget: 2_000_000,
    recalled_tokens_max: 0,
    elision_enabled: false,
    elision_keep_rounds: 1,
    elision_capture_limit: 64,
  },
  PlanCreate: { name: 'team', limits: LIMITS },
  PlanUpdate: { limits: LIMITS },
  MasterKeyAdd: { key_id: 'mk_0123abcd' },
  CredentialCompare: { credential: 'sk-1' },
  Nothing: {},
  AdminCreate: { name: 'Ann', role: 'viewer', expires_at: null },
};

const SUBJECTS: readonly Subject[] = OPERATIONS.flatMap(({ name, body: shape }) => {
  const { requestBody } = DOCUMENTED.find(({ operationId }) => operationId === name) ?? {};
  const [, schema = ''] = /schemas\/(\w+)/.exec(JSON.stringify(requestBody ?? '')) ?? [];
  const sample = SAMPLES[schema];
  return shape === undefined || sample === undefined ? [] : [{ schema, shape, sample }];
});

test('each body of the table has a sample', () => {
  const known = new Set(SUBJECTS.map(({ shape }) => shape));
  const without = OPERATIONS.filter(({ body }) => body !== undefined && !known.has(body));
  expect(without.map(({ name }) => name)).toEqual(['createMemoryPurge']);
});

describe.each(SUBJECTS)('$schema', ({ schema, shape, sample }) => {
  const isValid = schemaOf(schema, 'console');

  test('the sample is valid for the document and comes through whole', () => {
    expect(isValid(sample)).toBe(true);
    expect(parseShape(shape, sample)).toEqual({ value: sample });
  });

  test('one wrong member: the parser takes it exactly when the document does', () => {
    const disagreements = placesIn(sample).flatMap((place) =>
      [...ODDITIES, ['read', 'read'], 'a\u2028b', 'a\nb', 'A', 'a*b', '*'].flatMap((oddity) => {
        const changed = withChange(sample, place, oddity);
        const isTaken = parseShape(shape, changed).problems === undefined;
        return isTaken === isValid(changed)
          ? []
          : [`${place.join('.')} = ${nameOf(oddity)} is ${isTaken ? 'taken' : 'refused'}`];
      }),
    );
    expect(disagreements).toEqual([]);
  });

  test('an unknown member makes the body wrong', () => {
    expect(parseShape(shape, { ...sample, surplus: 1 }).problems).toEqual(['has unknown members']);
    expect(isValid({ ...sample, surplus: 1 })).toBe(false);
  });

  test('no value at all is taken by mistake', () => {
    assert(
      property(jsonValue(), (value) => {
        if (parseShape(shape, value).problems === undefined) expect(isValid(value)).toBe(true);
      }),
    );
  });
});

test('the document has every route of the table, under its name, and no other', () => {
  const told = DOCUMENTED.map(({ operationId, method, path }) => {
    const found = CONSOLE_ROUTES.find(method, path.replaceAll(/\{\w+\}/g, 'abcdefghijkl'));
    const operation = found !== undefined && 'row' in found ? found.row : undefined;
    return [operationId, operation?.name];
  });
  expect(told.filter(([name, operation]) => name !== operation)).toEqual([]);
  expect(told).toHaveLength(OPERATIONS.length);
  expect(JSON.stringify(consoleContract)).toContain(Object.keys(FAULTS).join('","'));
});

test('a path is known by its exact form alone', () => {
  for (const path of [
    '',
    'keys/',
    'keys/a/rotate/',
    'keys//rotate',
    'keys/*',
    'keys/a/b',
    'Keys',
  ]) {
    expect([path, CONSOLE_ROUTES.find('GET', path)]).toEqual([path, undefined]);
  }
  expect(CONSOLE_ROUTES.find('PUT', 'keys')).toEqual({ allow: 'GET, POST' });
  expect(CONSOLE_ROUTES.find('constructor', 'keys')).toEqual({ allow: 'GET, POST' });
  expect(CONSOLE_ROUTES.find('GET', 'constructor')).toBe(undefined);
});
