import { expect, test } from 'vitest';
import { DIALECT_APIS, DIALECTS } from '../../../src/core/dialects/apis.ts';
import { modelErrorBody } from '../../src/server/answers.ts';
import { serviceError } from '../../src/server/fault.ts';
import { findPath } from '../../../src/core/http/routes.ts';
import { FAULTS } from '../../../src/core/memory-api/faults.ts';
import { COMPRESSION_MODES, MEMORY_MODES } from '../../../src/core/http/modes.ts';
import { contractProblem } from '../support/contract-answers.ts';
import { ODDITIES, nameOf, placesIn, withChange } from '../../../test/support/contract-changes.ts';
import { consoleContract, schemaOf } from '../../../test/support/memory-api.ts';

// The published document is the oracle of the model routes; the answers of tests are held against it too.

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { operationId: string }>>>>;
  readonly components: {
    readonly schemas: Readonly<
      Record<string, { readonly enum?: readonly string[]; readonly description?: string }>
    >;
  };
}

const { paths, components } = consoleContract as Document;
const CODES = components.schemas['ModelErrorCode']?.enum ?? [];
const RECEIPT = `rcpt_${'0'.repeat(26)}`;

function statusOf(code: string): number {
  if (code in FAULTS) {
    expect(FAULTS[code as keyof typeof FAULTS].status).toBe(
      serviceError(code as keyof typeof FAULTS).status,
    );
  }
  const row = serviceError(code as Parameters<typeof serviceError>[0]);
  // A code that a service renames is not one of its own.
  expect(row.code).toBe(code);
  return row.status;
}

function bodyOf(dialect: (typeof DIALECTS)[number], code: string): Record<string, unknown> {
  const service = { receipt_id: RECEIPT, retry: { action: 'after_delay', after_ms: 2000 } };
  const error = { status: statusOf(code), code, message: 'm', requestId: RECEIPT, service };
  return { ...modelErrorBody(dialect, error) };
}

test('the document has the routes of the table, and no other', () => {
  const told = Object.entries(paths).filter(
    ([path]) => !/^\/(?:v1\/svc|\.well-known)\//.test(path),
  );
  const wrong = told.filter(([path, methods]) => {
    const entry = findPath({
      path: path.replace('{model}', 'gpt-5'),
      isAnthropic: false,
      relayPaths: [],
    });
    return Object.keys(methods).some((method) => !entry?.methods.includes(method.toUpperCase()));
  });
  expect(wrong).toEqual([]);
  const served = DIALECT_APIS.flatMap(({ modelPath, helperPaths }) => [modelPath, ...helperPaths]);
  expect(told.map(([path]) => path).toSorted()).toEqual(
    [...served, '/v1/models', '/v1/models/{model}'].toSorted(),
  );
});

test('modes are those of the code, and each error code has the status that the document tells', () => {
  expect(components.schemas['MemoryMode']?.enum).toEqual(MEMORY_MODES);
  expect(components.schemas['CompressionMode']?.enum).toEqual(COMPRESSION_MODES);
  const text = components.schemas['ModelErrorCode']?.description ?? '';
  const told = text.split(';').flatMap((part) => {
    const status = Number(/\d{3}/.exec(part)?.[0]);
    return [...part.matchAll(/[A-Z]+_[A-Z_]+|INTERNAL/g)].map(([code]) => [code, status]);
  });
  expect(new Set(told.map(([code]) => code))).toEqual(new Set(CODES));
  expect(told).toHaveLength(CODES.length);
  expect(told).toEqual(told.map(([code]) => [code, statusOf(String(code))]));
});

test.each(DIALECTS)(
  '%s: an error body is valid as it is made, and with a change it is not',
  (dialect) => {
    const isValid = schemaOf(
      dialect === 'anthropic_messages' ? 'AnthropicError' : 'OpenAiError',
      'console',
    );
    for (const code of CODES) {
      const body = bodyOf(dialect, code);
      expect([code, isValid(body), isValid.errors]).toEqual([code, true, null]);
      expect(isValid({ ...body, surplus: 1 })).toBe(false);
    }
    const body = bodyOf(dialect, 'MODEL_NOT_FOUND');
    const taken = placesIn(body).flatMap((place) =>
      ODDITIES.filter((oddity) => isValid(withChange(body, place, oddity))).map(
        (oddity) => `${place.join('.')} = ${nameOf(oddity)}`,
      ),
    );
    // A message is any text, `param` is always null, and svc may know no wait.
    expect(
      taken.filter((one) => !/message|param = null|receipt_id = null|after_ms/.test(one)),
    ).toEqual([]);
  },
);

test('an answer with a header that is missing, wrong or unknown is found', () => {
  const headers = {
    'content-type': 'application/json',
    'x-svc-request-id': RECEIPT,
    'x-svc-receipt-id': RECEIPT,
    'x-svc-memory-mode': 'read',
    'x-svc-memory-state': 'empty',
    'x-svc-compression-mode': 'deterministic',
    'x-svc-continuity-state': 'not_needed',
    'x-svc-original-input-tokens': '12',
    'x-svc-forwarded-input-tokens': '12',
    'x-svc-recalled-tokens': '0',
    'x-svc-elided-items': '0',
    'x-svc-elided-tokens': '0',
  };
  const told = { method: 'POST', path: '/v1/messages?beta=true', text: '{}', json: {} };
  const problem = (more: object, status = 200) =>
    contractProblem({ ...told, status, headers: { ...headers, ...more } });
  expect(problem({})).toBe(undefined);
  for (const name of Object.keys(headers).filter((one) => one.startsWith('x-svc-'))) {
    expect(problem({ [name]: undefined })).toContain(`${name} is missing`);
    expect(problem({ [name]: 'CANARY' })).toContain(name);
  }
  expect(problem({ 'x-svc-local-proxy': '1' })).toContain('x-svc-local-proxy');
  expect(problem({ 'x-svc-error-source': 'service' }, 422)).toContain('required');
  expect(problem({ 'x-svc-error-source': 'provider' }, 422)).toBe(undefined);
  expect(problem({}, 204)).toContain('may not answer 204');
});
