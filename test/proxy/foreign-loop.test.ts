import { expect, onTestFinished, test } from 'vitest';
import { openProxyStage } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput } from '../support/tool-session.ts';

/** Thinking that svc did not relay, of a model that binds it, in a tool loop of so many rounds. */
function loopBody(rounds: number): object {
  const messages = Array.from({ length: rounds }, (_, at) => [
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: `c2lnbmF0dXJl${at}` },
        { type: 'tool_use', id: `call_${at}`, name: 'Bash', input: { command: `step ${at}` } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: `call_${at}`, content: longOutput(`r${at}`, 50) },
      ],
    },
  ]);
  const prompt = { role: 'user', content: 'Mend the build, please.' };
  return { model: 'claude-opus-5-5', max_tokens: 64, messages: [prompt, ...messages.flat()] };
}

test('a tool loop with thinking that svc did not relay asks the ledger for its blocks once', async () => {
  let asked = 0;
  const stage = await openProxyStage({
    folder: tempFolder(),
    wrapLedger: (ledger) => ({
      isShared: ledger.isShared,
      generation: () => ledger.generation(),
      record: (entries) => ledger.record(entries),
      commit: (entries) => ledger.commit(entries),
      find: (addresses, withinMs) => {
        if (addresses.some(({ kind }) => kind === 'shared-block')) asked += 1;
        return ledger.find(addresses, withinMs);
      },
    }),
  });
  onTestFinished(() => stage.stop());
  for (const rounds of [1, 2, 3, 4]) {
    // oxlint-disable-next-line no-await-in-loop -- A client waits for each answer.
    await stage.send('anthropic_messages', loopBody(rounds));
    // oxlint-disable-next-line no-await-in-loop
    await stage.settled();
  }
  expect(asked).toBe(1);
});
