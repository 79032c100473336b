import type { RequestRow } from '../../src/ports/request-log.ts';

/** A row of the request log, to be changed by tests. */
export function requestRow(changes: Partial<RequestRow> = {}): RequestRow {
  return {
    id: 'req_000000000000000000000001',
    at: new Date(2026, 10, 20, 16, 45, 2).getTime(),
    client: 'claude-code',
    kind: 'main',
    dialect: 'anthropic_messages',
    model: 'claude-opus-5-5',
    space: '/home/me/shop',
    conversation: 'c1',
    status: 200,
    end: 'complete',
    memoryMode: 'read-write',
    memoryState: 'recalled',
    compressionMode: 'deterministic',
    continuityState: 'not_needed',
    originalInputTokens: 48_200,
    forwardedInputTokens: 48_312,
    recalledTokens: 112,
    elidedItems: 0,
    elidedTokens: 0,
    usage: { input: 1000, cacheRead: 47_000, cacheWrite: 300, output: 812 },
    ms: { body: 1.2, read: 0.8, recall: 3.1, plan: 0.1, head: 800, relay: 4200 },
    ...changes,
  };
}
