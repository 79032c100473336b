import { array, asyncProperty, assert, integer } from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { recordOf } from '../support/records.ts';
import { requestRow } from '../support/request-row.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** The store as the page's desk sees it. */

const HOUR_MS = 3_600_000;
const NOW = Date.parse('2026-11-20T12:00:00Z');

function openDesk() {
  const store = openEmbeddedStore({ folder: tempFolder(), report: () => undefined });
  onTestFinished(() => store.close());
  return store;
}

function patience(): AbortSignal {
  return AbortSignal.timeout(30_000);
}

function localDay(at: number): string {
  return new Intl.DateTimeFormat('sv-SE').format(at);
}

test('the days of a project are the local days of its memories, newest first, each with its count', async () => {
  await assert(
    asyncProperty(array(integer({ min: 0, max: 500 }), { maxLength: 30 }), async (hours) => {
      const store = openDesk();
      const { memory, desk } = store;
      const times = hours.map((hour) => NOW - hour * HOUR_MS);
      const records = times.map((at, nth) => recordOf(`Berth ${nth} is free.`, { at, space: 'a' }));
      await memory.capture([...records, recordOf('Elsewhere.', { space: 'b' })], patience());
      const counted = new Map<string, number>();
      for (const at of times.toSorted((a, b) => b - a)) {
        counted.set(localDay(at), (counted.get(localDay(at)) ?? 0) + 1);
      }
      const expected = [...counted].map(([day, memories]) => ({ day, memories }));
      expect(await desk.days('a')).toEqual(expected);
      expect(await desk.days('unknown')).toEqual([]);
      await store.close();
    }),
    { numRuns: 10 },
  );
});

test('a conversation begins with the words of its first prompt', async () => {
  const { memory, desk } = openDesk();
  const place = { space: 'a', conversation: 's1' };
  await memory.capture(
    [
      recordOf('The second prompt.', { ...place, exchange: 1 }),
      recordOf('An answer.', { ...place, exchange: 0, role: 'assistant' }),
      recordOf(`The first prompt. ${'x'.repeat(500)}`, { ...place, exchange: 0 }),
    ],
    patience(),
  );
  const [first = '', none, foreign] = await desk.beginnings([
    place,
    { ...place, conversation: 's2' },
    { ...place, space: 'b' },
  ]);
  expect([first.slice(0, 17), first.length, none, foreign]).toEqual([
    'The first prompt.',
    160,
    '',
    '',
  ]);
});

test('a record that was imported says so, keeps its mark when it is edited or marked anew, and is found by it', async () => {
  const { memory, desk } = openDesk();
  const live = recordOf('It came by live.', { space: 'a' });
  const imported = recordOf('It came from a file.', { space: 'a' });
  await memory.capture([live, { ...imported, isImported: true }], patience());
  const textsOf = async (source: 'live' | 'imported'): Promise<readonly string[]> =>
    (await desk.browse({ space: 'a', source, limit: 10 })).records.map(({ text }) => text);
  expect([await textsOf('live'), await textsOf('imported')]).toEqual([
    [live.text],
    [imported.text],
  ]);
  // The same words again, live: they were known.
  await memory.capture([imported], patience());
  expect(await textsOf('imported')).toEqual([imported.text]);

  const [record] = (await desk.browse({ space: 'a', source: 'imported', limit: 1 })).records;
  const { ref = '' } = record ?? {};
  await desk.pin({ space: 'a', ref, pin: 'never' });
  const { digest, text } = recordOf('It came from a file, and was edited.');
  expect(await desk.edit({ space: 'a', ref, text: { digest, text }, at: NOW })).toBe('edited');
  const [edited] = (await desk.browse({ space: 'a', source: 'imported', limit: 1 })).records;
  expect(edited).toMatchObject({ text, pin: 'never', editedAt: NOW });
  expect(edited?.importedAt).toBeGreaterThan(NOW - HOUR_MS * 1e6);
});

test('what a prompt finds is in the order of the score that is shown', async () => {
  const { memory, desk } = openDesk();
  const subjects = ['berth', 'crane', 'gate', 'ferry', 'tide', 'pilot', 'quay', 'tug'];
  const records = subjects.flatMap((subject, nth) => [
    recordOf(`The ${subject} of the harbour listens on port ${nth}.`, {
      at: NOW - nth * HOUR_MS * 900,
    }),
    recordOf(`Deploy the harbour's ${subject} on Fridays only, and its port with it.`, {
      at: NOW - nth * HOUR_MS,
    }),
    recordOf(`We named the ${subject} after a ${subjects[(nth + 3) % 8]}.`, {
      role: 'assistant',
      at: NOW,
    }),
  ]);
  await memory.capture(
    records.map((one) => ({ ...one, space: 'a' })),
    patience(),
  );
  const humanText =
    'On which port does the harbour listen, and when do we deploy its crane and gate?';
  const question = { humanText, assistantText: '', excludeDigests: [], tokensMax: 60, now: NOW };
  const { weighed } = await desk.look({ ...question, space: 'a' });
  const scores = weighed.map(({ score }) => score);
  expect(new Set(scores).size).toBeGreaterThan(4);
  expect(scores).toEqual(scores.toSorted((a, b) => b - a));
});

test('the sightings of a memory are the requests whose blocks quoted one of its references', async () => {
  const { requestLog, desk } = openDesk();
  const use = (refs: readonly string[]) => ({ recall: { exchange: 0, refs, isUsed: false } });
  requestLog.add(requestRow({ id: 'one', at: 1, ...use(['m_aaaaaaaa']) }));
  requestLog.add(requestRow({ id: 'none', at: 2, space: 'm_aaaaaaaa', ...use(['m_cccccccc']) }));
  requestLog.add(requestRow({ id: 'two', at: 3, ...use(['m_bbbbbbbbbbbbbbbb', 'm_cccccccc']) }));
  const idsOf = async (...refs: string[]): Promise<readonly string[]> =>
    (await desk.sightings(refs)).map(({ id }) => id);
  expect(await idsOf('m_aaaaaaaaaaaaaaaa', 'm_bbbbbbbbbbbbbbbb')).toEqual(['two', 'one']);
  expect([await idsOf('m_dddddddddddddddd'), await idsOf()]).toEqual([[], []]);
});

test('requests are listed since a time, and summed from one time until before another', async () => {
  const { requestLog } = openDesk();
  for (const at of [1, 2, 3, 4, 5]) requestLog.add(requestRow({ id: `r${at}`, at: at * HOUR_MS }));
  const listed = await requestLog.list({ limit: 4, since: 3 * HOUR_MS });
  expect(listed.map(({ id }) => id)).toEqual(['r5', 'r4', 'r3']);
  const counted = async (filter: { since: number; until?: number }): Promise<number> =>
    (await requestLog.sum(filter)).reduce((sum, { requests }) => sum + requests, 0);
  expect(await counted({ since: 2 * HOUR_MS, until: 4 * HOUR_MS })).toBe(2);
  expect(await counted({ since: 2 * HOUR_MS })).toBe(4);
});
