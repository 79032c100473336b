import { generateKeyPairSync, randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson } from '../../../src/core/memory-api/canonical.ts';
import { firstReceiptIdAt, newReceiptId, RECEIPT_ID, timeOfReceiptId } from '../../src/core/ids.ts';
import { objectSigner, publicJwk, publicPartOf, verifyObject } from '../../src/core/jws.ts';
import { receiptOf, receiptText } from '../../src/core/receipts.ts';
import { closingOf, openingOf } from '../support/receipt-facts.ts';

const ISSUER = { version: '0.1.2', node: 'node_a', seq: 1 };
const times = fc.integer({ min: 0, max: 2 ** 48 - 1 });

test('an id of a receipt is a UUID of version 7 that sorts as its time and tells it', () => {
  fc.assert(
    fc.property(times, times, (one, other) => {
      const [id, later] = [one, other].toSorted((a, b) => a - b);
      const [first, second] = [
        newReceiptId(id ?? 0, randomBytes),
        newReceiptId(later ?? 0, randomBytes),
      ];
      expect(first).toMatch(RECEIPT_ID);
      expect(timeOfReceiptId(first)).toBe(id);
      if (id !== later) expect(first < second).toBe(true);
      expect(firstReceiptIdAt(id ?? 0) <= first).toBe(true);
    }),
  );
  expect(timeOfReceiptId('rcpt_8zzzzzzzzzzzzzzzzzzzzzzzzz')).toBe(undefined);
  expect(timeOfReceiptId('rcpt_U')).toBe(undefined);
  // The bits of the version and of the variant, which every such UUID has.
  expect(newReceiptId(0, () => Buffer.alloc(10))).toBe('rcpt_0000000000e008000000000000');
});

test('any facts make a receipt that has a canonical form and ends after it began', () => {
  const texts = fc.string({ unit: 'binary', maxLength: 80 });
  fc.assert(
    fc.property(texts, fc.anything(), fc.double(), (text, usage, total) => {
      const receipt = receiptOf(
        openingOf({ model: text, space: text, sessionId: text }),
        closingOf({
          upstreamRequestId: text,
          upstreamResponseId: text,
          modelReported: text,
          providerUsage: { given: usage },
          times: { total, auth: total },
        }),
        ISSUER,
      );
      expect(canonicalJson(receipt)).toBe(receiptText(receipt));
      expect(JSON.parse(JSON.stringify(receipt))).toEqual(receipt);
      const [from, to] = [receipt['created_at'], receipt['completed_at']].map(String);
      expect(Date.parse(to ?? '')).toBeGreaterThanOrEqual(Date.parse(from ?? ''));
    }),
    { numRuns: 40 },
  );
});

// The members of a usage come in the provider's order, and JSON.stringify writes a name that is a number first.
test.each([
  ['Anthropic', { input_tokens: 43, cache_creation_input_tokens: 0, output_tokens: 90 }],
  ['OpenAI', { prompt_tokens: 9, completion_tokens: 3, prompt_tokens_details: { b: 1, a: 2 } }],
  ['another provider', { 9: 1, 10: 2 }],
])('R36: the signature of a receipt with the usage of %s is valid', (_name, providerUsage) => {
  const privateKey = newPrivateKey();
  const jwk = publicJwk(publicPartOf(privateKey));
  const receipt = receiptOf(openingOf(), closingOf({ providerUsage }), ISSUER);
  const signed = objectSigner({ kid: jwk.kid, privateKey }).signText(receiptText(receipt));
  expect(verifyObject(JSON.parse(signed) as Record<string, unknown>, [jwk])).toBe('valid');
});

function newPrivateKey(): string {
  const { privateKey } = generateKeyPairSync('ed25519');
  return privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
}

test('R13: a receipt repeats no secret and no text, only names, counts and times', () => {
  const key = `sk-ant-api03-${'Zq8'.repeat(30)}`;
  const { usage: _, ...unknown } = closingOf({
    modelReported: key,
    upstreamRequestId: 'two words',
    providerUsage: { input_tokens: 3, service_tier: 'gold', details: { cached: 1, note: 'x' } },
  });
  const receipt = receiptOf(openingOf({ model: key }), unknown, ISSUER);
  expect(JSON.stringify(receipt)).not.toContain('Zq8Zq8');
  expect(receipt).toMatchObject({
    model_requested: '[masked]',
    model_reported: '[masked]',
    upstream_request_id: null,
    provider_usage: { input_tokens: 3, details: { cached: 1 } },
    output_tokens: null,
  });
  expect(receipt['provider_usage']).not.toHaveProperty('service_tier');
});

test('R13: an id of an answer that is a key is masked, whichever of the two it is', () => {
  const key = `sk-ant-api03-${'Zq8'.repeat(30)}`;
  const idsOf = (upstreamRequestId: string, upstreamResponseId: string) => {
    const receipt = receiptOf(
      openingOf(),
      closingOf({ upstreamRequestId, upstreamResponseId }),
      ISSUER,
    );
    return [receipt['upstream_request_id'], receipt['upstream_response_id']];
  };
  expect(idsOf('req_1', 'msg_1')).toEqual(['req_1', 'msg_1']);
  expect(idsOf(key, 'msg_1')).toEqual(['[masked]', 'msg_1']);
  expect(idsOf('req_1', key)).toEqual(['req_1', '[masked]']);
  expect(idsOf('two words', 'msg_1')).toEqual([null, 'msg_1']);
});
