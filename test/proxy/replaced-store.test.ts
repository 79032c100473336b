import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { outputRecordOf } from '../support/records.ts';
import { openProxyStage } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput, type Round, sessionBody } from '../support/tool-session.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const SHELL = { model: 'test-model', max_tokens: 1024 };

test('outputs that a deleted store held are kept anew, also those that no proof is asked of', async () => {
  const folder = tempFolder();
  const stage = await openProxyStage({ folder });
  onTestFinished(() => stage.stop());
  const rounds: Round[] = Array.from({ length: 6 }, (_, at) => ({
    id: `call_${at}`,
    tool: 'Bash',
    args: { command: `cat file-${at}.ts` },
    output: longOutput(`file-${at}.ts`, 300),
  }));
  const send = async (): Promise<number> => {
    await stage.send('anthropic_messages', sessionBody('anthropic_messages', rounds));
    await stage.settled();
    const space = stage.rows.at(-1)?.space ?? '';
    const found = rounds.map(({ output }) =>
      stage.memory.retrieve({ space, digest: outputRecordOf(output).digest }, patience()),
    );
    return (await Promise.all(found)).filter((one) => one !== undefined).length;
  };
  expect(await send()).toBe(rounds.length);
  // What was said arrives later than the outputs, and would be in the next file.
  const said = () => stage.memory.list({ limit: 9 }, patience());
  await expect.poll(async () => (await said()).map(({ role }) => role)).toContain('assistant');
  rmSync(join(folder, 'memory.db'));
  expect(await said()).toEqual([]);
  expect(await send()).toBe(rounds.length);
});

test('what was said before svc came is kept again when the store that had it is deleted', async () => {
  const folder = tempFolder();
  const stage = await openProxyStage({ folder });
  onTestFinished(() => stage.stop());
  const fact = 'The harbour crane is painted yellow since May.';
  const messages = [
    { role: 'user', content: fact },
    { role: 'assistant', content: 'The colour of the crane is noted.' },
    { role: 'user', content: 'Which berth does the ferry use?' },
  ];
  const send = async (): Promise<readonly string[]> => {
    await stage.send('anthropic_messages', { ...SHELL, messages });
    await stage.settled();
    await expect
      .poll(async () => (await stage.memory.list({ limit: 9, words: 'crane' }, patience())).length)
      .toBe(2);
    return (await stage.memory.list({ limit: 9, words: 'crane' }, patience())).map(
      ({ text }) => text,
    );
  };
  expect(await send()).toContain(fact);
  rmSync(join(folder, 'memory.db'));
  expect(await stage.memory.list({ limit: 1 }, patience())).toEqual([]);
  expect(await send()).toContain(fact);
});
