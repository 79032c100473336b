import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { runHere, tempFolder } from '../support/cli.ts';
import { validConfig } from '../support/config.ts';
import { homeWith } from '../support/home.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { recordOf } from '../support/records.ts';

/** `svc memory why`, on a real store: it says what recall does, and changes nothing. */

vi.setConfig({ testTimeout: 60_000 });

/** With a provider, with none, as for hooks, and without any configuration. */
const CONFIGS = [
  validConfig(),
  { version: 1, upstreams: [], memory: { kind: 'embedded' } },
  undefined,
];

const SPACE = 'project/shop-0123456789';
const FACT =
  'The walrus parser drops the last chunk because `flushTail()` returns before the decoder ends.';

test.each(CONFIGS)('why says what is told, and why a prompt gets nothing: %j', async (config) => {
  const home = realpathSync(config === undefined ? tempFolder() : homeWith(config));
  const env = { SVC_DATA_HOME: join(tempFolder(), 'data') };
  const store = openEmbeddedStore({ folder: env.SVC_DATA_HOME, report: () => undefined });
  const place = { space: SPACE, exchange: 0, conversation: 'session-7', at: Date.UTC(2026, 4, 1) };
  const records = [
    recordOf('why does the walrus parser drop the last chunk?', place),
    recordOf(FACT, { ...place, role: 'assistant' }),
  ];
  await store.memory.capture(records, AbortSignal.timeout(30_000));
  await store.close();
  const why = (prompt: string) =>
    runHere(['memory', 'why', prompt, '--space', SPACE], { home, env });
  const told = await why('we had this before: the walrus parser drops the last chunk');
  expect(told.stderr).toBe('');
  expect(told.stdout).toContain(
    'This project is young: recall speaks from 4.5 on.\nRecall speaks.',
  );
  expect(told.stdout).toContain('It is told.');
  expect(told.stdout).toContain(`- assistant: ${FACT}`);
  const json = await runHere(
    ['memory', 'why', 'the walrus parser drops the last chunk', '--space', SPACE, '--json'],
    { home, env },
  );
  const ref = referenceOf(recordOf(FACT, { role: 'assistant' }).digest);
  expect(JSON.parse(json.stdout)).toMatchObject({ candidates: [{ ref }] });
  expect(told.stdout).toContain(`\n${ref.slice(0, 10)}  `);
  const reply = await why('yes, commit');
  expect(reply.stdout).toContain('Recall keeps quiet: the prompt names too little to search by');
  expect(reply.stdout).not.toContain('svc-memory');
});

test('why names a setting that is wrong', async () => {
  const home = tempFolder();
  const env = { SVC_DATA_HOME: join(tempFolder(), 'data'), SVC_RECALL_QUIET_PERCENT: 'half' };
  const { code, stderr } = await runHere(['memory', 'why', 'the walrus parser'], { home, env });
  expect([code, stderr]).toEqual([1, expect.stringContaining('SVC_RECALL_QUIET_PERCENT')]);
});
