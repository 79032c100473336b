import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { outputRecordOf, questionOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

test('a memory with a time outside of the calendar is refused, and an old row with one is recalled', async () => {
  const folder = tempFolder();
  const text = 'The staging database of the walrus shop listens on port 6431.';
  const first = openEmbeddedStore({ folder, report: () => undefined });
  const wrong = recordOf('Never stored.', { at: 8.64e15 + 1 });
  const states = await first.memory.capture([recordOf(text), wrong], patience());
  expect(states).toEqual(['stored', 'rejected']);
  const outputs = [outputRecordOf('x'.repeat(500), { at: 8.64e15 + 1 })];
  expect(await first.memory.capture(outputs, patience())).toEqual(['rejected']);
  await first.close();
  const database = loadDriver().open(join(folder, 'memory.db'));
  database.exec('UPDATE records SET at = 9007199254740991');
  database.close();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  const question = questionOf('On which port does the staging database listen?');
  const { passages } = await store.memory.recall(question, patience());
  expect(writeRecallBlock(passages, 512).text).toContain(text);
});
