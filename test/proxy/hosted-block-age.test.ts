import { expect, onTestFinished, test } from 'vitest';
import { refuse } from '../support/fake-service.ts';
import { openHostedScene, patience } from '../support/hosted.ts';
import { openProxyStage } from '../support/proxy-stage.ts';
import { recordOf } from '../support/records.ts';

const DAY_MS = 24 * 3_600_000;
const QUESTION = 'Which port has the walrus database?';

test('R26: what a service told leaves the prompts after a week, also when nobody can ask it', async () => {
  const { hosted, folder, service } = await openHostedScene();
  const record = { ...recordOf('The walrus database has the port 6431.'), space: 'default' };
  await hosted.memory.capture([record], patience());
  const settings = { recallMs: 10_000 };
  const stage = await openProxyStage({ folder, settings, wrap: () => hosted.memory });
  onTestFinished(() => stage.stop());
  let answer = '';
  const send = async (...texts: readonly string[]): Promise<string> => {
    const messages = texts.map((content, at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content,
    }));
    const { body } = await stage.send('anthropic_messages', {
      model: 'm',
      max_tokens: 9,
      messages,
    });
    const { content } = JSON.parse(body.toString()) as {
      readonly content: readonly { text: string }[];
    };
    answer = content[0]?.text ?? '';
    return stage.forwarded();
  };
  expect(await send(QUESTION)).toContain('6431');
  const first = answer;
  service.intercept = (_, response) => {
    refuse(response, 'STORE_UNAVAILABLE');
    return true;
  };
  stage.setClockAhead(6 * DAY_MS);
  expect(await send(QUESTION, first, 'And now?')).toContain('6431');
  stage.setClockAhead(8 * DAY_MS);
  expect(await send(QUESTION, first, 'And now, later?')).not.toContain('6431');
});
