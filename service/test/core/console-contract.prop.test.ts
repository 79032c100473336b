import { assert, jsonValue, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FAULTS } from '../../../src/core/memory-api/faults.ts';
import { parseShape, type Shape } from '../../../src/core/memory-api/shape.ts';
import {
  adminCreate,
  masterKeyAdd,
  nothing,
  keyCreate,
  keyRotate,
  planCreate,
  planUpdate,
  providerCompare,
  providerCreate,
  providerUpdate,
  tenantCreate,
  tenantUpdate,
} from '../../src/core/console-contract.ts';
import { settingsUpdate } from '../../src/core/account-settings.ts';
import { findConsoleRoute } from '../../src/core/console-routes.ts';
import { NO_LIMITS } from '../../src/core/plans.ts';
import { nameOf, ODDITIES, placesIn, withChange } from '../../../test/support/contract-changes.ts';
import { consoleContract, schemaOf } from '../../../test/support/memory-api.ts';

// The published document is the oracle: a body that it takes the parsers take, and no other.

interface Subject {
  readonly schema: string;
  readonly shape: Shape<unknown>;
  readonly sample: Readonly<Record<string, unknown>>;
}

const LIMITS = Object.fromEntries(Object.keys(NO_LIMITS).map((name) => [name, 7]));

const SUBJECTS: readonly Subject[] = [
  {
    schema: 'KeyCreate',
    shape: keyCreate,
    sample: {
      name: 'laptop',
      scopes: ['read', 'receipt:read'],
      spaces: ['project/*', 'global'],
      allowed_models: ['gpt-5', 'claude-*'],
      expires_at: '2030-05-01T12:00:00Z',
      tokens_per_day: 1000,
      tokens_per_month: null,
    },
  },
  { schema: 'KeyRotate', shape: keyRotate, sample: { grace_seconds: 604_800 } },
  {
    schema: 'TenantCreate',
    shape: tenantCreate,
    sample: { tenant_id: 'acme-2', name: 'Acme, Inc.', plan: 'team' },
  },
  {
    schema: 'TenantUpdate',
    shape: tenantUpdate,
    sample: { name: 'Acme', plan: 'team', status: 'suspended' },
  },
  {
    schema: 'ProviderCreate',
    shape: providerCreate,
    sample: {
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
  },
  {
    schema: 'ProviderUpdate',
    shape: providerUpdate,
    sample: {
      version: 3,
      name: 'gateway',
      credential: 'sk-1',
      custom_headers: [{ name: 'x-team', value: 'a' }],
      custom_query: [],
      default_model: 'gpt-5',
      allowed_models: ['gpt-5'],
      enabled: true,
    },
  },
  {
    schema: 'SettingsUpdate',
    shape: settingsUpdate,
    sample: {
      compression_mode: 'shadow',
      input_budget: 2_000_000,
      recalled_tokens_max: 0,
      elision_enabled: false,
      elision_keep_rounds: 1,
      elision_capture_limit: 64,
    },
  },
  { schema: 'PlanCreate', shape: planCreate, sample: { name: 'team', limits: LIMITS } },
  { schema: 'PlanUpdate', shape: planUpdate, sample: { limits: LIMITS } },
  { schema: 'MasterKeyAdd', shape: masterKeyAdd, sample: { key_id: 'mk_0123abcd' } },
  { schema: 'CredentialCompare', shape: providerCompare, sample: { credential: 'sk-1' } },
  { schema: 'Nothing', shape: nothing, sample: {} },
  {
    schema: 'AdminCreate',
    shape: adminCreate,
    sample: { name: 'Ann', role: 'viewer', expires_at: null },
  },
];

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
  const { paths } = consoleContract as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  const start = '/v1/svc/console/';
  const told = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(path.startsWith(start) ? methods : {}).map(([method, { operationId }]) => {
      const found = findConsoleRoute(
        method.toUpperCase(),
        path.slice(start.length).replaceAll(/\{\w+\}/g, 'abcdefghijkl'),
      );
      const route = found !== undefined && 'route' in found ? found.route : undefined;
      return [operationId, route?.operation];
    }),
  );
  expect(told.filter(([name, operation]) => name !== operation)).toEqual([]);
  expect(told).toHaveLength(44);
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
    expect([path, findConsoleRoute('GET', path)]).toEqual([path, undefined]);
  }
  expect(findConsoleRoute('PUT', 'keys')).toEqual({ allow: 'GET, POST' });
  expect(findConsoleRoute('constructor', 'keys')).toEqual({ allow: 'GET, POST' });
  expect(findConsoleRoute('GET', 'constructor')).toBe(undefined);
});
