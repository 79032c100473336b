import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { runHere } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { FakeService } from '../support/fake-service.ts';
import { homeWith } from '../support/home.ts';
import { settingsFor } from '../support/hosted.ts';
import { questionOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const SPACE = 'project/shop';

function openStore(folder = tempFolder()) {
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  return store;
}

test('pages miss no memory while others are forgotten, said again and stored', async () => {
  const { memory } = openStore();
  const records = Array.from({ length: 40 }, (_, at) => recordOf(`Berth ${at} is free.`, { at }));
  await memory.capture(records, patience());
  const seen: string[] = [];
  let before: number | undefined;
  for (let round = 0; round < 10; round += 1) {
    // oxlint-disable-next-line no-await-in-loop -- Page after page.
    const page = await memory.page(
      { limit: 5, ...(before !== undefined && { before }) },
      patience(),
    );
    seen.push(...page.records.map(({ text }) => text));
    if (page.next === undefined) break;
    before = page.next;
    const [said, forgotten] = [records[round], records[39 - round * 5]];
    if (said === undefined || forgotten === undefined) break;
    // oxlint-disable-next-line no-await-in-loop
    await memory.capture(
      [{ ...said, at: 1e12, isTimed: true }, recordOf(`New ${round}.`)],
      patience(),
    );
    // oxlint-disable-next-line no-await-in-loop
    await memory.forget({ refs: [referenceOf(forgotten.digest)] }, patience());
  }
  expect(seen.toSorted()).toEqual(records.map(({ text }) => text).toSorted());
});

test('an export has what was stored by a clock that was ahead, and its marks, which an import sets', async () => {
  const home = realpathSync(tempFolder());
  const data = join(home, 'data');
  const env = { SVC_DATA_HOME: data };
  const store = openStore(data);
  const fact = recordOf('The staging port is 6431.', { space: SPACE, at: Date.now() + 86_400_000 });
  const mistyped = recordOf('The staging port is 6413.', { space: SPACE, at: fact.at });
  await store.memory.capture([mistyped], patience());
  const text = { text: fact.text, digest: fact.digest };
  await store.desk.edit({ space: SPACE, ref: referenceOf(mistyped.digest), text, at: 1000 });
  await store.desk.pin({ space: SPACE, ref: referenceOf(fact.digest), pin: 'never' });
  await store.close();
  const exported = await runHere(['memory', 'export'], { home, env });
  expect(exported.stderr).toContain('Exported: 1.');
  const other = join(home, 'other');
  const imported = await runHere(['memory', 'import', '-'], {
    home,
    env: { SVC_DATA_HOME: other },
    input: exported.stdout,
  });
  expect(imported.stderr).toContain('Imported 1 of 1 memories: 1 new');
  const { desk, memory } = openStore(other);
  const { records } = await desk.browse({ space: SPACE, limit: 10 });
  expect(records).toMatchObject([{ pin: 'never', editedAt: 1000, text: fact.text }]);
  const asked = questionOf('Which is the staging port?', { space: SPACE });
  expect(await memory.recall(asked, patience())).toEqual({ passages: [] });
});

test('an export from a service goes on behind a memory that cannot be read', async () => {
  const service = await new FakeService().listen();
  onTestFinished(() => service.close());
  const records = Array.from({ length: 1002 }, (_, at) =>
    recordOf(`Berth ${at} is free.`, { at, space: SPACE }),
  );
  await service.operations.memory.capture(records, patience());
  const unread = { ref: referenceOf(records[900]?.digest ?? ''), reason: 'unknown' };
  service.alter = ({ path }, answer) => {
    if (path.endsWith('/retrieve')) return { ...answer, objects: [], missing: [unread] };
    const items = (answer['data'] ?? []) as Record<string, unknown>[];
    const data = items.map((item) => ({
      ...item,
      verbatim: item['text'] !== 'Berth 900 is free.',
    }));
    return path.endsWith('/items') ? { ...answer, data } : answer;
  };
  const home = homeWith({ ...validConfig(), memory: settingsFor(service) });
  const { stdout, stderr } = await runHere(['memory', 'export'], { home });
  expect(stderr).toContain('Exported: 1001.');
  expect(stdout).toContain('Berth 0 is free.');
});

test('a memory that was moved or edited has its marks, goes back, and is not brought back by its conversation', async () => {
  const home = realpathSync(tempFolder());
  const data = join(home, 'data');
  const store = openStore(data);
  const { memory, desk } = store;
  const fact = recordOf('The staging port is 6431.', { space: SPACE });
  const ref = referenceOf(fact.digest);
  await memory.capture([fact], patience());
  await desk.pin({ space: SPACE, ref, pin: 'never' });
  const move = (from: string, to: string) =>
    runHere(['memory', 'move', ref, '--to', to, '--space', from], {
      home,
      env: { SVC_DATA_HOME: data },
    });
  expect((await move(SPACE, 'global')).stderr).toContain('Moved to global: 1.');
  expect(await memory.capture([fact], patience())).toEqual(['forgotten']);
  expect((await desk.browse({ limit: 9 })).records).toMatchObject([
    { space: 'global', pin: 'never' },
  ]);
  expect((await move('global', SPACE)).stderr).toContain(`Moved to ${SPACE}: 1.`);
  expect((await desk.browse({ limit: 9 })).records).toMatchObject([{ space: SPACE, pin: 'never' }]);
  // What was forgotten does not come back by a move.
  await memory.capture([{ ...fact, space: 'team' }], patience());
  await memory.forget({ refs: [ref], space: 'team' }, patience());
  expect((await move(SPACE, 'team')).stderr).toContain('was forgotten in team');

  const next = recordOf('The staging port is 7001.', { space: SPACE });
  const edit = (from: string, { text, digest }: typeof next) =>
    desk.edit({ space: SPACE, ref: from, text: { text, digest }, at: 1 });
  expect(await edit(ref, next)).toBe('edited');
  expect(await memory.capture([fact], patience())).toEqual(['forgotten']);
  expect(await edit(referenceOf(next.digest), fact)).toBe('edited');
  expect((await desk.browse({ limit: 9 })).records).toMatchObject([
    { text: fact.text, pin: 'never' },
  ]);
  // A text that was forgotten is not what an edit brings back.
  const gone = recordOf('Otters use 7002.', { space: SPACE });
  await memory.capture([gone], patience());
  await memory.forget({ refs: [referenceOf(gone.digest)] }, patience());
  expect(await edit(ref, gone)).toBe('forgotten');
});

test('a merge keeps what a person said is never recalled', async () => {
  const { memory, desk } = openStore();
  const fact = (space: string) => recordOf('The staging port is 6431.', { space });
  await memory.capture([fact('a'), fact('b')], patience());
  const ref = referenceOf(fact('a').digest);
  await desk.pin({ space: 'a', ref, pin: 'never' });
  await desk.pin({ space: 'b', ref, pin: 'always' });
  await memory.moveSome({ from: 'a', to: 'b' }, patience());
  expect((await desk.browse({ limit: 9 })).records).toMatchObject([{ space: 'b', pin: 'never' }]);
});
