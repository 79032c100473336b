import { createHash } from 'node:crypto';
import { assert, integer, property, record, string, uint8Array } from 'fast-check';
import { expect, test } from 'vitest';
import { makeProof, readProof } from '../../src/core/http/local-token.ts';

const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest();
const asked = record({
  token: string(),
  challenge: uint8Array({ minLength: 17, maxLength: 64 }).map((bytes) =>
    Buffer.from(bytes).toString('base64url'),
  ),
  pid: integer({ min: 1, max: 4_194_304 }),
  port: integer({ min: 1, max: 65_535 }),
});

test('T4: a proof is read back as its process by whoever holds the same token', () => {
  assert(
    property(asked, ({ token, challenge, pid, port }) => {
      const proof = makeProof(digestOf(token), challenge, { pid, port }) ?? '';
      expect(readProof(digestOf(token), { challenge, port }, proof)).toBe(pid);
    }),
  );
});

test('T4: a proof for another token, challenge, port or process is none', () => {
  const challenge = 'a'.repeat(32);
  const digest = digestOf('token');
  const proof = makeProof(digest, challenge, { pid: 7, port: 8765 }) ?? '';
  const question = { challenge, port: 8765 };
  expect(readProof(digest, question, proof)).toBe(7);
  expect(readProof(digestOf('other'), question, proof)).toBeUndefined();
  expect(readProof(digest, { ...question, challenge: 'b'.repeat(32) }, proof)).toBeUndefined();
  expect(readProof(digest, { ...question, port: 9000 }, proof)).toBeUndefined();
  expect(readProof(digest, question, proof.replace(/^7\./, '8.'))).toBeUndefined();
  for (const text of ['', 'x', '7', '7.', '.abc', `${proof}a`, proof.slice(0, -1)]) {
    expect(readProof(digest, question, text)).toBeUndefined();
  }
});

test('what is no challenge gets no proof', () => {
  for (const text of ['', 'short', 'a'.repeat(87), `${'a'.repeat(30)}\n`, 'ä'.repeat(30)]) {
    expect(makeProof(digestOf('token'), text, { pid: 1, port: 1 })).toBeUndefined();
  }
});
