import { expect, onTestFinished, test, vi } from 'vitest';
import { FakeService } from '../support/fake-service.ts';
import { HookStage } from '../support/hook-stage.ts';
import { settingsFor } from '../support/hosted.ts';

/** Hooks with a memory service: two machines, neither with a proxy, share what their sessions said. */

vi.setConfig({ testTimeout: 60_000 });

const FACT = 'The staging database of the marmalade service listens on port 6543, not on 5432.';
const NOTED = 'The marmalade staging database uses port 6543; the old value 5432 was wrong.';
const ASKED = 'Which port does the staging database of the marmalade service use?';

/** Both have a clone of the same repository, so both have the same space. */
function machine(service: FakeService, settings: object = {}): HookStage {
  const stage = new HookStage();
  stage.clone('https://git.example/shop.git');
  // A busy machine must not make svc silent.
  stage.configure({ memory: settingsFor(service), proxy: { recallMs: 10_000, ...settings } });
  return stage;
}

test('what a hook keeps on one machine a hook on another recalls, through the service', async () => {
  const service = await new FakeService().listen(0);
  onTestFinished(() => service.close());
  await machine(service).tell('s1', FACT, NOTED);
  const other = machine(service);
  const asked = { prompt_id: 'p1', prompt: ASKED };
  expect(await other.claude('UserPromptSubmit', 's2', asked)).toContain('6543');
  expect(service.invalid).toEqual([]);
});

test('what a service that is away does not take waits, and the prompt goes on', async () => {
  const service = await new FakeService().listen(0);
  onTestFinished(() => service.close());
  const stage = machine(service);
  service.intercept = (_, response) => {
    response.destroy();
    return true;
  };
  await stage.tell('s1', FACT, NOTED);
  expect(await stage.claude('UserPromptSubmit', 's2', { prompt_id: 'p1', prompt: ASKED })).toBe('');
  service.intercept = () => false;
  await stage.tell('s3', 'The harbour keeps its lock in a file of its own.', 'It is harbour.lock.');
  const other = machine(service);
  const asked = { prompt_id: 'p1', prompt: ASKED };
  expect(await other.claude('UserPromptSubmit', 's2', asked)).toContain('6543');
});

test('a second look tells the service the names of the calls, and no word of prompt or answer', async () => {
  const service = await new FakeService().listen(0);
  onTestFinished(() => service.close());
  const stage = machine(service, { secondLook: 'hosted' });
  stage.write('s2', 'Make the marmalade job write twice as fast, please.');
  stage.write('s2', '', { type: 'text', text: 'I begin with the parsnip.' });
  for (const id of ['t1', 't2', 't3', 't4']) {
    const input = { file_path: `${stage.project}/src/harbour_lock.ts` };
    stage.write('s2', '', { type: 'tool_use', id, name: 'Read', input });
    stage.write('s2', '', { type: 'tool_result', tool_use_id: id, content: 'export {}' });
  }
  const ran = { prompt_id: 'p1', tool_name: 'Read', tool_input: {}, tool_response: 'export {}' };
  await stage.claude('PostToolUse', 's2', { ...ran, tool_use_id: 't4' });
  const asked = service.seen.filter(({ path }) => path.endsWith('/recall'));
  expect(asked.map(({ body }) => body).join()).toContain('harbour_lock.ts');
  expect(asked.map(({ body }) => body).join()).not.toMatch(/marmalade|parsnip/);
});
