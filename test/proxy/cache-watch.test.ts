import { expect, test } from 'vitest';
import { FoundEntries, keyOf, type LedgerEntry } from '../../src/core/ledger/entries.ts';
import type { Ledger } from '../../src/ports/ledger.ts';
import { CacheWatch } from '../../src/proxy/cache-watch.ts';
import { Conversations, type Reading } from '../../src/proxy/conversations.ts';
import { readRequest } from '../support/view-of.ts';
import { requestWith, said } from '../support/dialect-wire.ts';
import { manualClock } from '../support/manual-clock.ts';

const MINUTE = 60_000;

/** Nodes with one ledger and one clock, and the requests of one conversation. */
function openNodes(isShared: boolean) {
  const clock = manualClock();
  const entries = new Map<string, LedgerEntry>();
  let asked = 0;
  let recorded = 0;
  const ledger: Ledger = {
    isShared,
    generation: () => 0,
    find: async (addresses) => {
      asked += addresses.length;
      return new FoundEntries(addresses.flatMap((one) => entries.get(keyOf(one)) ?? []));
    },
    record: async (given) => {
      recorded += given.length;
      for (const entry of given) entries.set(keyOf(entry), entry);
    },
    commit: async () => true,
  };
  const node = () => {
    const conversations = new Conversations();
    const watch = new CacheWatch({ clock, ledger });
    const read = (): Reading => {
      const reading = readRequest(conversations, {
        id: 'r',
        route: { kind: 'model', dialect: 'anthropic_messages' },
        method: 'POST',
        target: '/v1/messages',
        headers: ['session-id', 's'],
        body: Buffer.from(
          JSON.stringify(requestWith('anthropic_messages', [said('user', 'Hello there.')])),
        ),
        startedAt: 0,
      });
      if (reading === undefined) throw new Error('not read');
      return reading;
    };
    return () => watch.pauseOf(read(), 1000);
  };
  return { clock, node, counts: () => ({ asked, recorded }) };
}

test('a cache that another node kept alive is not cold', async () => {
  const { clock, node } = openNodes(true);
  const [one, other] = [node(), node()];
  await one();
  for (let minute = 0; minute < 10; minute += 1) {
    clock.goOn(MINUTE);
    // oxlint-disable-next-line no-await-in-loop -- One request after the other.
    expect((await other()).isCold).toBe(false);
  }
  clock.goOn(MINUTE);
  // This node has not seen the conversation for eleven minutes.
  expect((await one()).isCold).toBe(false);
});

test('a cache that no node kept alive is cold, a minute after its lifetime at the latest', async () => {
  const { clock, node } = openNodes(true);
  const [one, other] = [node(), node()];
  await one();
  clock.goOn(30_000);
  await other();
  clock.goOn(6.5 * MINUTE);
  expect((await one()).isCold).toBe(true);
  // A node that has not seen it reads when it was seen.
  expect((await node()()).isCold).toBe(false);
  clock.goOn(7 * MINUTE);
  expect((await node()()).isCold).toBe(true);
});

test('the ledger notes a request once a minute, and is asked at first and after a long pause', async () => {
  const { clock, node, counts } = openNodes(true);
  const one = node();
  for (let round = 0; round < 20; round += 1) {
    // oxlint-disable-next-line no-await-in-loop
    await one();
    clock.goOn(9000);
  }
  expect(counts()).toEqual({ asked: 1, recorded: 3 });
  const alone = openNodes(false);
  const own = alone.node();
  await own();
  alone.clock.goOn(6 * MINUTE);
  expect((await own()).isCold).toBe(true);
  expect(alone.counts()).toEqual({ asked: 1, recorded: 2 });
});
