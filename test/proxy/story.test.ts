import { expect, test } from 'vitest';
import { DIALECTS, promptOf } from '../support/dialect-wire.ts';
import { startRecordingProvider, startStory } from '../support/story.ts';

const FACT = 'The staging database of the walrus shop listens on port 6431.';
const QUESTION = 'On which port does the staging database of the walrus shop listen?';

test.each(DIALECTS)('%s: what one session said is recalled in the next', async (dialect) => {
  const provider = await startRecordingProvider();
  const story = await startStory({ provider });
  const told = await story.send(dialect, promptOf(dialect, FACT));
  expect(told.headers).toMatchObject({ 'x-svc-memory-state': 'empty' });
  await story.settled();
  const asked = await story.send(dialect, promptOf(dialect, QUESTION));
  expect(asked.headers).toMatchObject({ 'x-svc-memory-state': 'recalled' });
  expect(provider.seen[1]?.body.toString()).toContain(FACT);
});
