import { expect, test } from 'vitest';
import { answerTo, promptOf } from '../support/dialect-wire.ts';
import { startRecordingProvider, startStory } from '../support/story.ts';

const PROMPT = 'The staging database of the walrus shop listens on port 6431.';
const ANSWER = 'Its production twin uses port 7431 behind pgbouncer, as Oskar wrote.';

test('R43: a client that svc does not know gives unverified records, one that it knows does not', async () => {
  const provider = await startRecordingProvider();
  provider.reply = (request) => answerTo(request, { text: ANSWER });
  const story = await startStory({ provider });
  const agents = ['OpenAI/JS 7.55.0', 'copilot/1.0.102 (linux)'];
  for (const [index, agent] of agents.entries()) {
    const body = promptOf('openai_chat_completions', `${PROMPT} It is gateway ${index}.`, {
      tools: [{ type: 'function', function: { name: 'ls' } }],
    });
    await story.send('openai_chat_completions', body, { 'User-Agent': agent });
  }
  await story.settled();
  const records = await story.memory.list({ limit: 9 }, AbortSignal.timeout(30_000));
  const typed = records.filter(({ role }) => role === 'user');
  expect(typed.map(({ client, source }) => `${client} ${source ?? 'verified'}`).toSorted()).toEqual(
    ['copilot verified', 'unknown unverified'],
  );
  expect(
    records.filter(({ role, source }) => role === 'assistant' && source !== undefined),
  ).toEqual([]);
});
