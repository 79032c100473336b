import { expect, test } from 'vitest';
import { requestReport } from '../../src/core/meter/request-report.ts';
import { requestRow } from '../support/request-row.ts';

test('a report for an issue has states and sizes, and nothing that leads to a person', () => {
  const row = requestRow({
    id: 'req_canary_id',
    space: 'canary-space-0123456789',
    conversation: 'canary-conversation',
    elidedRefs: ['m_canary_ref'],
    items: [{ edit: 'stub', count: 1, tokens: 9, tool: 'canary_tool', refs: ['m_canary'] }],
    recall: { exchange: 0, refs: ['m_canary'], isUsed: true },
    miss: { by: 'client', place: 'tools', name: 'canary_server', tokens: 9, price: 1 },
    status: 429,
  });
  const report = requestReport({ ...row, later: 'canary of a later release' });
  expect(report).not.toContain('canary');
  expect(JSON.parse(report)).toMatchObject({
    svc: '0.1.2',
    status: 429,
    memoryState: row.memoryState,
    miss: { by: 'client', place: 'tools', tokens: 9 },
  });
});
