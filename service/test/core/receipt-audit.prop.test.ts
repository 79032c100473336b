import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { ReceiptAudit } from '../../src/core/receipt-audit.ts';
import { headOf, receiptOf, totalOf } from '../../src/core/receipts.ts';
import { closingOf, openingOf, testSigner } from '../support/receipt-facts.ts';

const { signer, jwk } = testSigner();
const stranger = testSigner();
const COUNT = 12;

function whole(): readonly Record<string, unknown>[] {
  const values = ['acme', 'globex'].flatMap((tenant) => {
    const receipts = Array.from({ length: COUNT }, (_, at) =>
      receiptOf(openingOf({ tenant }), closingOf(), { version: '1', node: 'node_a', seq: at + 1 }),
    );
    const head = headOf({ node: 'node_a', tenant, lastSeq: COUNT }, { at: 'now', isClosed: true });
    return [...receipts, head] as readonly object[];
  });
  return values.map((value) => ({ ...signer.sign(value) }));
}

function auditOf(values: readonly unknown[]) {
  const audit = new ReceiptAudit([jwk]);
  for (const value of values) audit.take(value);
  return audit.result();
}

test('receipts as they were signed are whole, in any order', () => {
  const values = whole();
  fc.assert(
    fc.property(fc.shuffledSubarray([...values.keys()], { minLength: values.length }), (order) => {
      const { receipts, heads, wrong, missing } = auditOf(order.map((at) => values[at]));
      expect([receipts, heads, wrong, missing]).toEqual([2 * COUNT, 2, [], []]);
    }),
    { numRuns: 5 },
  );
});

test('each receipt that was taken away is missed by its number', () => {
  const values = whole();
  const seqOf = (value: Record<string, unknown>): number =>
    (value['issuer'] as { seq: number } | undefined)?.seq ?? 0;
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 1, max: COUNT }), { minLength: 1 }), (gone) => {
      const lost = new Set(gone);
      const left = values.filter((one) => one['tenant_id'] !== 'acme' || !lost.has(seqOf(one)));
      const { missing, wrong } = auditOf(left);
      const found = missing.flatMap(({ tenant, from, to }) =>
        Array.from({ length: to - from + 1 }, (_, at) => [tenant, from + at]),
      );
      const expected = gone.toSorted((a, b) => a - b).map((seq) => ['acme', seq]);
      expect([found, wrong]).toEqual([expected, []]);
    }),
    { numRuns: 20 },
  );
});

test('of some days alone only numbers between two receipts can be missing', () => {
  const values = whole();
  const [, , third, fourth, , sixth] = values;
  const audit = new ReceiptAudit([jwk]);
  for (const value of [third, fourth, sixth, values[COUNT]]) audit.take(value);
  const { missing } = audit.result({ isPartial: true });
  expect(missing).toEqual([{ tenant: 'acme', node: 'node_a', from: 5, to: 5 }]);
});

test('an altered, added or removed member, another key and a copy are each found', () => {
  const [first = {}, ...others] = whole();
  const { signature: _, ...bare } = first;
  const forged = stranger.signer.sign(bare);
  const cases = [
    [{ ...first, output_tokens: 1 }, 'invalid'],
    [{ ...first, surplus: 1 }, 'invalid'],
    [Object.fromEntries(Object.entries(first).filter(([name]) => name !== 'status')), 'invalid'],
    [{ ...bare, signature: Reflect.get(forged, 'signature') }, 'unknown_key'],
    [bare, 'unsigned'],
  ] as const;
  for (const [changed, outcome] of cases) {
    const { wrong, missing } = auditOf([changed, ...others]);
    expect(wrong).toMatchObject([{ outcome }]);
    // A receipt that is not valid stands for no number.
    expect(missing).toMatchObject([{ tenant: 'acme', from: 1, to: 1 }]);
  }
  expect(auditOf([first, first, ...others]).wrong).toMatchObject([{ outcome: 'twice' }]);
});

test('receipts that are gone together with their head are missed by the number of all', () => {
  const values = whole();
  const total = signer.sign(totalOf({ tenant: 'acme', receipts: COUNT, at: 'now' }));
  expect(auditOf([...values, total])).toMatchObject({ wrong: [], missing: [], unknown: [] });
  const isAcme = (one: Record<string, unknown>): boolean => one['tenant_id'] === 'acme';
  const unknown = (left: readonly unknown[]) => auditOf([...left, total]).unknown;
  // A whole node.
  expect(unknown(values.filter((one) => !isAcme(one)))).toEqual([{ tenant: 'acme', count: COUNT }]);
  // The end of one, whose head was replaced by an earlier one.
  const acme = values.filter((one) => isAcme(one) && one['object'] === 'svc.receipt').slice(0, 9);
  const head = headOf({ node: 'node_a', tenant: 'acme', lastSeq: 9 }, { at: 'x', isClosed: false });
  expect(unknown([...acme, signer.sign(head)])).toEqual([{ tenant: 'acme', count: 3 }]);
  // Only a signed number counts, and an older one hides nothing.
  const forged = { ...total, receipts: 2 };
  const older = signer.sign(totalOf({ tenant: 'acme', receipts: 4, at: 'then' }));
  expect(auditOf([...acme, forged]).wrong).toHaveLength(1);
  expect(auditOf([...acme, older, total, older]).unknown).toEqual([{ tenant: 'acme', count: 3 }]);
});
