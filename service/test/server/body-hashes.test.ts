import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { BodyHashes } from '../../src/server/models/body-hashes.ts';

const hexOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const BODY = Buffer.from('the body');

test('what was sent is hashed when it is asked for, and once', () => {
  const hashes = new BodyHashes(BODY);
  const pieces = ['the ', 'change'].map((text) => Buffer.from(text));
  hashes.forwarded(pieces);
  hashes.known();
  for (const piece of pieces) piece.fill('x');
  expect(hashes.known()).toMatchObject({
    request: hexOf('the body'),
    forwarded: hexOf('the change'),
  });
});

test('a body that svc did not change is hashed too', () => {
  const hashes = new BodyHashes(BODY);
  hashes.forwarded(undefined);
  expect(hashes.known()).toMatchObject({
    request: hexOf('the body'),
    forwarded: hexOf('the body'),
  });
});

test('a change that the provider refused was not what it took', () => {
  const hashes = new BodyHashes(BODY);
  hashes.forwarded([Buffer.from('a change')]);
  hashes.known();
  hashes.forwarded(undefined);
  expect(hashes.known().forwarded).toBe(hexOf('the body'));
});

test('of a request that went nowhere nothing is told, and of an answer all that came', () => {
  const hashes = new BodyHashes(BODY);
  expect(hashes.known()).toEqual({ request: undefined, forwarded: undefined, response: undefined });
  for (const chunks of [['an answer'], ['an ', 'answer'], ['an', ' ', 'answer']]) {
    const told = new BodyHashes(BODY);
    const take = told.answering();
    for (const chunk of chunks) take(Buffer.from(chunk));
    expect(told.known().response).toBe(hexOf('an answer'));
  }
  const empty = new BodyHashes(undefined);
  empty.answering();
  expect(empty.known().response).toBe(hexOf(''));
});
