import { expect, test } from 'vitest';
import { KeptRequests } from '../../src/proxy/in-flight.ts';

const MIB = 1 << 20;

test('a request that is too long to be kept takes no other request away', () => {
  const kept = new KeptRequests();
  kept.add({ id: 'one', sent: Buffer.alloc(MIB), went: undefined }, 50);
  kept.add({ id: 'long', sent: Buffer.alloc(65 * MIB), went: undefined }, 50);
  kept.add({ id: 'two', sent: Buffer.alloc(MIB), went: [Buffer.alloc(MIB)] }, 50);
  expect(['one', 'long', 'two'].map((id) => kept.find(id)?.id)).toEqual(['one', undefined, 'two']);
});

test('the oldest requests go when all together are too long, or too many', () => {
  const kept = new KeptRequests();
  for (const id of ['a', 'b', 'c'])
    kept.add({ id, sent: Buffer.alloc(30 * MIB), went: undefined }, 50);
  expect(['a', 'b', 'c'].map((id) => kept.find(id)?.id)).toEqual([undefined, 'b', 'c']);
  kept.add({ id: 'd', sent: Buffer.alloc(MIB), went: undefined }, 1);
  expect(['b', 'c', 'd'].map((id) => kept.find(id)?.id)).toEqual([undefined, undefined, 'd']);
});
