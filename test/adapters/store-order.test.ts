import { expect, onTestFinished, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { questionOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { toldRecords } from '../support/told.ts';

/**
 * What is recalled, best first; a star marks the assistant's answer. A change of the ranking shows
 * here as a change of order. When it is meant, `npm run bench:recall` says what it is worth: then
 * write the new order down.
 */
const ORDERS: Record<string, string> = {
  'Which port does the gateway use?': 'port-new tests-fast port-new* port-old port-old*',
  'Which port did the gateway use before the move?':
    'port-new mondays port-new* tests-fast port-old',
  'On which day do we release?': 'mondays fridays fridays* rollback rollback*',
  'Who signs a release off?': 'mondays fridays fridays* rollback rollback*',
  'How long do the integration tests take?': 'tests-fast tests-slow tests-slow* rollback* german',
  'Why did uploads fail?': 'timeouts timeouts* tests-slow tests-slow*',
  'Can we go back to an earlier image?': 'rollback rollback* fridays fridays* tests-slow',
  'What did I say about caching in February?': 'cache cache* fridays fridays* port-old',
  'What did we do on March 9?': 'tests-fast german port-new port-new*',
  'Who may use the profiler that we buy?': 'bought chinese',
  'Wann verschicken wir die Rechnungen?': 'german tests-fast chinese',
  '发票模板放在哪里?': 'chinese bought german',
  'What does Oswald think of the gateway?': '',
  'Add a retry to the upload': '',
  'translate the readme into French': '',
};
/** Of each, as many as are compared: further down it is about crumbs. */
const COMPARED = 5;

test('the order of what is recalled is the one that is written down', async () => {
  const told = toldRecords();
  const store = openEmbeddedStore({ folder: tempFolder(), report: () => undefined });
  onTestFinished(() => store.close());
  const patience = AbortSignal.timeout(10_000);
  await store.memory.capture(
    told.map(({ record }) => record),
    patience,
  );
  const names = new Map(told.map(({ record, name }) => [record.digest, name]));
  const orders: Record<string, string> = {};
  for (const text of Object.keys(ORDERS)) {
    const question = questionOf(text, { now: Date.parse('2026-03-20T12:00:00Z') });
    const { passages } = await store.memory.recall(question, patience);
    const found = passages.map(({ digest }) => names.get(digest));
    orders[text] = found.slice(0, COMPARED).join(' ');
  }
  expect(orders).toEqual(ORDERS);
});
