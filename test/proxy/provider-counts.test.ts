import { expect, test } from 'vitest';
import type { LedgerEntry } from '../../src/core/ledger/entries.ts';
import { FoundEntries } from '../../src/core/ledger/found-entries.ts';
import type { Plan } from '../../src/core/plan/plan.ts';
import { Conversations } from '../../src/proxy/conversations.ts';
import { ProviderCounts } from '../../src/proxy/provider-counts.ts';
import { type Reading, readRequest } from '../../src/proxy/read-request.ts';
import { NOTHING_PLANNED } from '../../src/core/plan/evidence.ts';
import { requestWith, said } from '../support/dialect-wire.ts';

function open() {
  let generation = 0;
  const recorded: LedgerEntry[] = [];
  const conversations = new Conversations();
  const counts = new ProviderCounts({
    clock: { now: () => 7, monotonic: () => 0 },
    ledger: {
      generation: () => generation,
      find: async () => new FoundEntries([]),
      record: async (entries) => {
        recorded.push(...entries);
      },
      commit: async () => true,
      isShared: false,
    },
  });
  /** The request of a conversation of so many prompts. */
  const read = (prompts: number): Reading => {
    const items = Array.from({ length: 2 * prompts - 1 }, (_, at) => {
      return at % 2 === 0 ? said('user', `Question ${at}?`) : said('assistant', `Answer ${at}.`);
    });
    const reading = readRequest(conversations, {
      id: 'r',
      route: { kind: 'model', dialect: 'anthropic_messages' },
      method: 'POST',
      target: '/v1/messages',
      headers: ['session-id', 's'],
      body: Buffer.from(JSON.stringify(requestWith('anthropic_messages', items))),
      startedAt: 0,
    });
    if (reading === undefined) throw new Error('not read');
    return reading;
  };
  const forget = (): void => {
    generation += 1;
  };
  return { counts, read, recorded, forget };
}

const planned = (forwardedTokens: number): Plan => ({ ...NOTHING_PLANNED, forwardedTokens });
const usage = (input: number) => ({ input, cacheRead: 0, cacheWrite: 0, output: 1 });

test('a count that says nothing new is neither written again nor asked for', () => {
  const { counts, read, recorded } = open();
  const first = read(3);
  expect(counts.addresses(first).length).toBeGreaterThan(0);
  counts.counted(first, planned(100_000), usage(120_000));
  expect(recorded).toMatchObject([{ counted: 120_000, estimated: 100_000 }]);
  const next = read(4);
  expect(counts.addresses(next)).toEqual([]);
  expect(counts.newest(next, [], new FoundEntries([]))).toEqual({
    counted: 120_000,
    estimated: 100_000,
  });
  counts.counted(next, planned(103_000), usage(123_600));
  expect(recorded).toHaveLength(1);
});

test.each([
  ['the provider counts otherwise', planned(101_000), usage(122_500)],
  ['the request has grown', planned(106_000), usage(127_200)],
])('a count is written again when %s', (_, plan, newer) => {
  const { counts, read, recorded } = open();
  counts.counted(read(3), planned(100_000), usage(120_000));
  counts.counted(read(4), plan, newer);
  expect(recorded).toHaveLength(2);
});

test('a count is written again before a restarted process would find none', () => {
  const { counts, read, recorded } = open();
  counts.counted(read(3), planned(100_000), usage(120_000));
  counts.counted(read(10), planned(100_000), usage(120_000));
  expect(recorded).toHaveLength(1);
  counts.counted(read(11), planned(100_000), usage(120_000));
  expect(recorded).toHaveLength(2);
});

test('a fork from before the count, and a ledger that forgot, do not know it', () => {
  const { counts, read, forget } = open();
  counts.counted(read(5), planned(100_000), usage(120_000));
  expect(counts.addresses(read(4)).length).toBeGreaterThan(0);
  expect(counts.addresses(read(6))).toEqual([]);
  forget();
  expect(counts.addresses(read(6)).length).toBeGreaterThan(0);
});
