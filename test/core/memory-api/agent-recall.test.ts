import { expect, test } from 'vitest';
import { exchangeIn, exchangeOf } from '../../../src/core/memory-api/agent-recall.ts';

test('R26: an exchange crosses with its lines alone, whatever else is known about it', () => {
  const exchange = {
    ref: 'm_aaaaaaaa',
    records: ['m_aaaaaaaabbbbbbbb'],
    space: 'project',
    client: 'codex',
    at: Date.UTC(2026, 4, 1),
    quotes: [{ role: 'user' as const, text: 'why?' }],
  };
  const known = { ...exchange, provenance: { root: '/home/a/shop', files: [] } };
  const wire = exchangeOf(known);
  expect(JSON.stringify(wire)).not.toContain('/home/a/shop');
  expect(exchangeIn(wire)).toEqual(exchange);
});
