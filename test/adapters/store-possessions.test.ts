import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { Descriptors } from '../../src/adapters/store/descriptors.ts';
import { type Database, openDatabase } from '../../src/adapters/store/database.ts';
import { type Driver, loadDriver } from '../../src/adapters/store/driver.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { Outputs } from '../../src/adapters/store/outputs.ts';
import { proveHeld } from '../../src/adapters/store/possessions.ts';
import { Records } from '../../src/adapters/store/records.ts';
import { textProof } from '../../src/core/memory-api/canonical.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import type { Holding, HoldQuestion } from '../../src/ports/memory.ts';
import { outputRecordOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const NOW = 1_800_000_000_000;
const DAY_MS = 24 * 3600 * 1000;
const SPACE = 'project';

let driver: Driver;
beforeAll(async () => {
  driver = loadDriver();
});

/** A process's own connection to the folder's database, and what it says of it. */
function open(folder: string) {
  const database = openDatabase({
    folder,
    driver,
    now: NOW,
    descriptors: new Descriptors(),
    report: () => undefined,
  });
  onTestFinished(() => database.close());
  const [outputs, records] = [new Outputs(database), new Records(database)];
  const hold = (question: HoldQuestion, now = NOW): Holding[] =>
    proveHeld([outputs, records], question, now);
  const holds = (digests: readonly string[], now = NOW): Holding[] =>
    hold({ space: SPACE, digests, nonce: randomBytes(32) }, now);
  return { database, outputs, records, hold, holds };
}

test('law 2: what another process forgets is not proven any more, though it was proven just before', async () => {
  const folder = tempFolder();
  const [proxy, commandLine] = [0, 1].map(() => {
    const store = openEmbeddedStore({ folder, report: () => undefined });
    onTestFinished(() => store.close());
    return store.memory;
  });
  const patience = AbortSignal.timeout(30_000);
  const [gone, kept] = [outputRecordOf('the first log'), outputRecordOf('the second log')];
  await proxy?.capture([gone, kept], patience);
  const digests = [gone.digest, kept.digest];
  const held = async () => {
    const question = { space: SPACE, digests, nonce: randomBytes(32) };
    return (await proxy?.hold(question, patience))?.map(({ digest }) => digest);
  };
  expect(await held()).toHaveLength(2);
  expect(await held()).toHaveLength(2);
  await commandLine?.forget({ refs: [referenceOf(gone.digest)] }, patience);
  expect(await held()).toEqual([kept.digest]);
});

test('law 2: each proof is of its own nonce, also of bytes that were read before', () => {
  const { outputs, records, hold } = open(tempFolder());
  const [output, record] = [outputRecordOf('a log'), recordOf('A fact about ports.')];
  outputs.keep([output], NOW);
  records.capture([record]);
  for (const nonce of [randomBytes(32), randomBytes(32)]) {
    const digests = [output.digest, record.digest, output.digest];
    expect(hold({ space: SPACE, digests, nonce }, NOW)).toEqual([
      { digest: output.digest, proof: textProof(nonce, 'tool', output.text) },
      { digest: record.digest, proof: textProof(nonce, 'user', record.text) },
    ]);
  }
  const nonce = randomBytes(32);
  expect(hold({ space: 'other', digests: [output.digest], nonce }, NOW)).toEqual([]);
});

test('law 2: an output that was proven at every request is pruned neither early nor unseen', () => {
  const { outputs, holds } = open(tempFolder());
  const [used, idle] = [outputRecordOf('used'), outputRecordOf('idle')];
  outputs.keep([used, idle], NOW);
  const digests = [used.digest];
  expect(holds([...digests, idle.digest])).toHaveLength(2);
  for (let day = 1; day <= 40; day += 1) {
    expect(holds(digests, NOW + day * DAY_MS)).toHaveLength(1);
    outputs.keep([outputRecordOf(`day ${day}`)], NOW + day * DAY_MS);
  }
  // One write in so many prunes.
  const later = NOW + 40 * DAY_MS;
  for (let nth = 0; nth < 256; nth += 1) outputs.keep([outputRecordOf(`log ${nth}`)], later);
  expect(holds([...digests, idle.digest], later).map(({ digest }) => digest)).toEqual(digests);
});

test('a clock that is ahead for two days deletes no output', () => {
  const folder = tempFolder();
  const first = outputRecordOf('first');
  for (const day of [0, 1, 2, 400, 401, 3]) {
    const { outputs, holds } = open(folder);
    // The first write of a process prunes.
    outputs.keep(day === 0 ? [first] : [outputRecordOf(`day ${day}`)], NOW + day * DAY_MS);
    expect(holds([first.digest], NOW + day * DAY_MS)).toHaveLength(1);
  }
});

const TEXTS = Array.from({ length: 6 }, (_, nth) => `Text number ${nth} of the history.`);

/** What is stored at this moment. */
function truth({ database }: { database: Database }, nonce: Uint8Array): Holding[] {
  const rows = database.all<{ digest: string; text: Uint8Array; role: 'tool' | 'user' }>(
    `SELECT digest, text, 'tool' AS role FROM outputs UNION ALL SELECT digest, text, role FROM records`,
  );
  return rows.map(({ digest, text, role }) => ({
    digest,
    proof: textProof(nonce, role, Buffer.from(text).toString('utf8')) ?? '',
  }));
}

test('law 2: whatever several processes do in turn, a store claims what the file holds, and no more', () => {
  const nth = fc.nat(TEXTS.length - 1);
  const step = fc.record({
    who: fc.nat(1),
    what: fc.constantFrom('keep', 'capture', 'forget', 'forget all', 'rewrite', 'roll back'),
    nth,
  });
  const digests = TEXTS.flatMap((text) => [outputRecordOf(text).digest, recordOf(text).digest]);
  const folder = tempFolder();
  const opened = [open(folder), open(folder)];
  const witness = open(folder);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      witness.outputs.forget({ space: SPACE }, NOW);
      forgetAll(witness.records);
      witness.database.run('DELETE FROM tombstones');
      for (const { who, what, nth: at } of steps) {
        const one = opened[who];
        if (one === undefined) continue;
        act(one, what, TEXTS[at] ?? '');
        for (const { hold } of opened) {
          const nonce = randomBytes(32);
          const held = hold({ space: SPACE, digests, nonce }, NOW);
          expect(sorted(held)).toEqual(sorted(truth(witness, nonce)));
        }
      }
    }),
  );
});

function forgetAll(records: Records): void {
  records.beginForget({ space: SPACE });
  while (records.forgetSome(NOW) > 0);
}

function act(
  one: { database: Database; outputs: Outputs; records: Records },
  what: string,
  text: string,
): void {
  const { database, outputs, records } = one;
  const { digest } = outputRecordOf(text);
  if (what === 'keep') outputs.keep([outputRecordOf(text)], NOW);
  if (what === 'capture') records.capture([recordOf(text)]);
  if (what === 'forget') outputs.forget({ refs: [referenceOf(digest)] }, NOW);
  if (what === 'forget all') forgetAll(records);
  const change = (): void => {
    const other = Buffer.from(`${text} Or not.`);
    database.run('UPDATE outputs SET text = ? WHERE digest = ?', other, digest);
  };
  if (what === 'rewrite') change();
  if (what !== 'roll back') return;
  const undone = (): void =>
    database.transaction(() => {
      change();
      database.run('DELETE FROM outputs');
      throw new Error('undone');
    });
  expect(undone).toThrow('undone');
}

function sorted(holdings: readonly Holding[]): readonly Holding[] {
  return holdings.toSorted((one, other) => one.digest.localeCompare(other.digest));
}
