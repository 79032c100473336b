import { expect, test } from 'vitest';
import { GitProjects } from '../../src/adapters/projects/git-projects.ts';
import { changeRegistry, withForward } from '../../src/adapters/projects/registry.ts';
import { promptOf } from '../support/dialect-wire.ts';
import { recordOf } from '../support/records.ts';
import { startRecordingProvider, startStory } from '../support/story.ts';
import { tempFolder } from '../support/temp-folder.ts';

const FACT = 'The gateway of the walrus shop listens on port 6431.';
const SAID = 'From May on the walrus shop sells mugs with tusks.';
const QUESTION = 'On which port does the gateway of the walrus shop listen?';

test('a request that names a space recalls from it and is kept in it under its new name, as does one without', async () => {
  const provider = await startRecordingProvider();
  const folder = tempFolder();
  const projects = new GitProjects(folder, { recheckMs: 0 });
  const story = await startStory({ provider, folder, projects });
  let sessions = 0;
  const sent = async (
    headers: Readonly<Record<string, string>>,
    prompt = `${QUESTION} (${sessions})`,
  ): Promise<string> => {
    sessions += 1;
    const dialect = 'anthropic_messages';
    const body = promptOf(dialect, prompt);
    await story.send(dialect, body, { ...headers, 'session-id': `session-${sessions}` });
    return provider.seen.at(-1)?.body.toString() ?? '';
  };
  await story.memory.capture(
    [recordOf(FACT, { space: 'team/new', conversation: 'earlier' })],
    AbortSignal.timeout(30_000),
  );
  const named = { 'x-svc-memory-space': 'team/old' };
  expect([await sent(named), await sent({})].filter((body) => body.includes(FACT))).toEqual([]);
  for (const name of ['team/old', 'default']) {
    // oxlint-disable-next-line no-await-in-loop
    await changeRegistry(folder, (now) => ({
      ...now,
      forwards: withForward(now.forwards, name, 'team/new'),
    }));
  }
  await expect.poll(() => sent(named)).toContain(FACT);
  await expect.poll(() => sent({})).toContain(FACT);
  await sent({}, SAID);
  const newest = async () => {
    const filter = { space: 'team/new', words: 'tusks', limit: 10 };
    const records = await story.memory.list(filter, AbortSignal.timeout(30_000));
    return records.map(({ text }) => text);
  };
  await expect.poll(newest).toEqual([SAID]);
});
