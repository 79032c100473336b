import { assert, jsonValue, property } from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  captureAnswer,
  captureRequest,
  itemsPage,
  recallAnswer,
  recallRequest,
  retrieveAnswer,
  retrieveRequest,
  sourcesPage,
  whoAmI,
  purgeReceipt,
  purgeRequest,
} from '../../../src/core/memory-api/contract.ts';
import { faultBody, FAULTS, faultOf, type FaultCode } from '../../../src/core/memory-api/faults.ts';
import { parseShape, type Shape } from '../../../src/core/memory-api/shape.ts';
import { INEXACT, nameOf, ODDITIES, placesIn, withChange } from '../../support/contract-changes.ts';
import { contract, PAGES, SAMPLES, schemaOf } from '../../support/memory-api.ts';

// The published document is the oracle: what it takes the parsers take, and nothing else.

interface Subject {
  readonly name: string;
  readonly schema: string;
  readonly shape: Shape<unknown>;
  readonly sample: Readonly<Record<string, unknown>>;
}

const SHAPES: Readonly<Record<string, Shape<unknown>>> = {
  WhoAmI: whoAmI,
  RecallRequest: recallRequest,
  RecallResponse: recallAnswer,
  CaptureRequest: captureRequest,
  CaptureResponse: captureAnswer,
  RetrieveRequest: retrieveRequest,
  RetrieveResponse: retrieveAnswer,
  PurgeRequest: purgeRequest,
  PurgeReceipt: purgeReceipt,
  Error: faultBody,
};

const pageSchema = (path: string): string =>
  `/paths/~1v1~1svc~1memory~1${path}/get/responses/200/content/application~1json/schema`;

const SUBJECTS: readonly Subject[] = [
  ...Object.entries(SHAPES).map(([name, shape]) => ({
    name,
    schema: name,
    shape,
    sample: SAMPLES[name] ?? {},
  })),
  { name: 'items', schema: pageSchema('items'), shape: itemsPage, sample: PAGES.items },
  { name: 'sources', schema: pageSchema('sources'), shape: sourcesPage, sample: PAGES.sources },
];

describe.each(SUBJECTS)('$name', ({ schema, shape, sample }) => {
  const isValid = schemaOf(schema);

  test('the sample with every member is valid for the document and comes through whole', () => {
    expect(isValid(sample)).toBe(true);
    expect(parseShape(shape, sample)).toEqual({ value: sample });
  });

  test('one wrong member: the parser takes it exactly when the document does', () => {
    const disagreements = placesIn(sample).flatMap((place) =>
      ODDITIES.flatMap((oddity) => {
        const changed = withChange(sample, place, oddity);
        const isTaken = parseShape(shape, changed).problems === undefined;
        // What no schema says: that confirm repeats the space, that candidates need a nonce.
        const isRule = ['nonce', 'confirm', 'space'].includes(String(place[0]));
        const isStricter = !isTaken && (isRule || oddity === INEXACT);
        return isTaken === isValid(changed) || isStricter
          ? []
          : [`${place.join('.')} = ${nameOf(oddity)} is ${isTaken ? 'taken' : 'refused'}`];
      }),
    );
    expect(disagreements).toEqual([]);
  });

  test('R13: unknown members are left behind, whatever they are called', () => {
    const json = `${JSON.stringify(sample).slice(0, -1)},"surplus":1,"__proto__":{"space":"x"}}`;
    expect(parseShape(shape, JSON.parse(json))).toEqual({ value: sample });
  });

  test('no value at all is taken by mistake', () => {
    assert(
      property(jsonValue(), (value) => {
        if (parseShape(shape, value).problems === undefined) expect(isValid(value)).toBe(true);
      }),
    );
  });
});

test('a problem names its place, and never what stood there', () => {
  const { problems } = parseShape(recallRequest, { space: 'Geheim!', max_tokens: 'Geheim!' });
  expect(problems).toEqual([
    'space has a wrong format',
    'max_tokens is not a whole number in the allowed range',
  ]);
});

test('every example of the document is valid for its own schema', () => {
  const examples = examplesIn(contract, '');
  expect(examples.length).toBeGreaterThan(8);
  const wrong = examples.filter(({ pointer, value }) => !schemaOf(`${pointer}/schema`)(value));
  expect(wrong).toEqual([]);
});

test('the table of faults and the document name the same codes', () => {
  const sample = SAMPLES['Error'];
  const isValid = schemaOf('Error');
  for (const code of Object.keys(FAULTS)) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A key of the table.
    const body = faultOf(code as FaultCode, { message: 'm', requestId: 'r', afterMs: 1 });
    expect([code, isValid(body)]).toEqual([code, true]);
  }
  expect(JSON.stringify(contract)).toContain(Object.keys(FAULTS).join('","'));
  expect(isValid(sample)).toBe(true);
});

interface Example {
  /** Of the media type that holds it. */
  readonly pointer: string;
  readonly value: unknown;
}

function examplesIn(node: unknown, pointer: string): Example[] {
  if (typeof node !== 'object' || node === null) return [];
  const fields = Object.entries(node);
  const own = fields.flatMap(([name, value]): Example[] => {
    if (name === 'example' && 'schema' in node) return [{ pointer, value }];
    if (name !== 'examples' || !('schema' in node)) return [];
    return Object.values(Object(value)).map((example) => ({
      pointer,
      value: Object(example).value,
    }));
  });
  const inner = fields.flatMap(([name, value]) =>
    examplesIn(value, `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
  );
  return [...own, ...inner];
}
