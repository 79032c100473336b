import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import type { MemoryRecord, SpeakerRole } from '../../src/ports/memory.ts';
import { FILES_MAX, type ProvenanceNote } from '../../src/ports/provenance.ts';
import { recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const COMMIT = 'a'.repeat(40);

function openStore() {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  return { ...store, folder };
}

function fileAt(path: string, hash = 'hash-of-zebrafishlantern') {
  return { path, hash, size: 12, modifiedMs: 1_763_829_000_000.25, inode: 2 ** 52 };
}

function noteOf(
  records: readonly MemoryRecord<SpeakerRole>[],
  other: Partial<ProvenanceNote> = {},
): ProvenanceNote {
  return {
    space: 'project',
    digests: records.map(({ digest }) => digest),
    root: '/home/a/shop',
    commit: COMMIT,
    files: [fileAt('src/port.ts')],
    ...other,
  };
}

const asked = recordOf('Which port does the pool use?');
const answered = recordOf('The pool uses port 6543.', { role: 'assistant' });

test('the commit and the files of an exchange are found from each of its records', async () => {
  const { memory, provenance } = openStore();
  await memory.capture([asked, answered], patience());
  await provenance.keep([noteOf([answered, asked])]);
  for (const { digest } of [asked, answered]) {
    const [held] = await provenance.list({ refs: [referenceOf(digest)], limit: 10 });
    expect(held).toMatchObject({
      root: '/home/a/shop',
      commit: COMMIT,
      files: [fileAt('src/port.ts')],
      record: { text: answered.text },
    });
  }
});

test('R26: what is forgotten takes its commit and its files along, out of every file of the folder', async () => {
  const { memory, provenance, folder } = openStore();
  await memory.capture([asked, answered], patience());
  await provenance.keep([noteOf([answered, asked])]);
  const holders = (): string[] =>
    readdirSync(folder).filter((file) =>
      readFileSync(join(folder, file)).toString('latin1').includes('zebrafishlantern'),
    );
  expect(holders().length).toBeGreaterThan(0);
  expect(await memory.forget({ refs: [referenceOf(answered.digest)] }, patience())).toBe(1);
  expect(await provenance.list({ limit: 10 })).toEqual([]);
  expect(holders()).toEqual([]);
  // A note that arrives late finds no record.
  await provenance.keep([noteOf([answered])]);
  expect(await provenance.list({ limit: 10 })).toEqual([]);
});

test('nothing of it is in a record, and a record is listed and read as before', async () => {
  const { memory, provenance } = openStore();
  await memory.capture([answered], patience());
  const before = await memory.list({ limit: 10 }, patience());
  await provenance.keep([noteOf([answered])]);
  expect(await memory.list({ limit: 10 }, patience())).toEqual(before);
});

test('a newer note of the same record replaces the one before, and too many files are cut', async () => {
  const { memory, provenance } = openStore();
  await memory.capture([answered], patience());
  await provenance.keep([noteOf([answered])]);
  const many = Array.from({ length: 10_000 }, (_, at) => fileAt(`src/${at}.ts`));
  await provenance.keep([noteOf([answered], { files: [fileAt('x'.repeat(5000)), ...many] })]);
  const held = await provenance.list({ limit: 10 });
  expect(held.map(({ files }) => files.length)).toEqual([FILES_MAX]);
});

test('pages follow the order of the records and name one space', async () => {
  const { memory, provenance } = openStore();
  const records = Array.from({ length: 7 }, (_, at) =>
    recordOf(`Fact ${at}.`, { exchange: at, space: at < 5 ? 'project' : 'other' }),
  );
  await memory.capture(records, patience());
  await provenance.keep(records.map((one) => noteOf([one], { space: one.space })));
  const first = await provenance.list({ limit: 3, space: 'project' });
  const second = await provenance.list({
    limit: 3,
    space: 'project',
    after: first.at(-1)?.place ?? 0,
  });
  expect([first.length, second.length]).toEqual([3, 2]);
});

test('it moves with its record, also where the other space holds the same words', async () => {
  const { memory, provenance } = openStore();
  const there = recordOf(answered.text, { role: 'assistant', space: 'team/shop' });
  const other = recordOf('Another fact.', { exchange: 1 });
  await memory.capture([answered, other, there], patience());
  await provenance.keep([noteOf([answered]), noteOf([other])]);
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- Batch after batch.
    const moved = await memory.moveSome({ from: 'project', to: 'team/shop' }, patience());
    if (moved.memories + moved.outputs === 0) break;
  }
  const held = await provenance.list({ space: 'team/shop', limit: 10 });
  expect(held.map(({ record }) => record.text).toSorted()).toEqual([
    'Another fact.',
    answered.text,
  ]);
});
