import { expect, test } from 'vitest';
import { DIALECTS } from '../../src/core/conversation/dialect.ts';
import { answerTo, requestWith, said } from '../support/dialect-wire.ts';
import { recordOf } from '../support/records.ts';
import { startRecordingProvider, startStory } from '../support/story.ts';

/**
 * Two conversations begin with the same words, and the second one gets another block than the first.
 * A client that goes on from the second one under a new name, after a single answer, must find its block.
 */

const QUESTION = 'On which port does the staging database of the walrus shop listen?';

function blocksIn(body: Buffer | undefined): string[] {
  return body?.toString().match(/<svc-memory [^]*?<\/svc-memory>/g) ?? [];
}

const NAMES = [{ 'session-id': 'session-three' }, {}];
const CASES = DIALECTS.flatMap((dialect) => NAMES.map((fork) => ({ dialect, fork })));

test.each(CASES)(
  '$dialect: a fork $fork after one answer keeps its block',
  async ({ dialect, fork }) => {
    const provider = await startRecordingProvider();
    const story = await startStory({ provider });
    const teach = async (text: string): Promise<void> => {
      const record = recordOf(text, { space: 'default', conversation: text });
      await story.memory.capture([record], AbortSignal.timeout(30_000));
    };
    const opening = requestWith(dialect, [said('user', QUESTION)]);
    const askAs = async (name: object, answer: string): Promise<string | undefined> => {
      provider.reply = (request) => answerTo(request, { text: answer });
      await story.send(dialect, opening, { ...name });
      return blocksIn(provider.seen.at(-1)?.body)[0];
    };
    await teach('The staging database of the walrus shop listens on port 6431.');
    const others = fork['session-id'] === undefined ? {} : { 'session-id': 'session-one' };
    const first = await askAs(others, 'On port 6431.');
    await teach('The staging database of the walrus shop listens on port 7000 since today.');
    const answer = 'On port 7000, "since" today: \u00e9\u{1f600}\n\\ 1/2.';
    const second = await askAs({ 'session-id': 'session-two' }, answer);
    expect(second).not.toBe(first);
    const items = [said('user', QUESTION), said('assistant', answer), said('user', 'Since when?')];
    await story.send(dialect, requestWith(dialect, items), fork);
    expect(blocksIn(provider.seen.at(-1)?.body)[0]).toBe(second);
  },
);
