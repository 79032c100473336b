import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { answerTo, requestWith, said, type WireItem } from '../support/dialect-wire.ts';
import { manualClock } from '../support/manual-clock.ts';
import { recordOf } from '../support/records.ts';
import { startRecordingProvider, startStory } from '../support/story.ts';

/**
 * Two conversations begin with the same words, and the second one gets another block than the first.
 * A client that goes on from the second one under a new name, after a single answer, must find its block.
 */

const HOUR_MS = 3_600_000;
const QUESTION = 'On which port does the staging database of the walrus shop listen?';

function blocksIn(body: Buffer | undefined): string[] {
  return body?.toString().match(/<svc-memory [^]*?<\/svc-memory>/g) ?? [];
}

async function startForking(dialect: Dialect) {
  const clock = manualClock();
  const provider = await startRecordingProvider();
  const story = await startStory({ provider, clock });
  const ask = async (items: readonly WireItem[], headers: object): Promise<string | undefined> => {
    await story.send(dialect, requestWith(dialect, items), { ...headers });
    return blocksIn(provider.seen.at(-1)?.body)[0];
  };
  return {
    clock,
    teach: async (text: string): Promise<void> => {
      const record = recordOf(text, { space: 'default', conversation: text });
      await story.memory.capture([record], AbortSignal.timeout(30_000));
    },
    askAs: (name: object, answer: string) => {
      provider.reply = (request) => answerTo(request, { text: answer });
      return ask([said('user', QUESTION)], name);
    },
    goOn: (answer: string, name: object) => {
      const first = [said('user', QUESTION), said('assistant', answer)];
      return ask([...first, said('user', 'Since when?')], name);
    },
  };
}

const NAMES = [{ 'session-id': 'session-three' }, {}];
const CASES = DIALECTS.flatMap((dialect) => NAMES.map((fork) => ({ dialect, fork })));

test.each(CASES)(
  '$dialect: a fork $fork after one answer keeps its block',
  async ({ dialect, fork }) => {
    const { teach, goOn, askAs } = await startForking(dialect);
    await teach('The staging database of the walrus shop listens on port 6431.');
    const others = fork['session-id'] === undefined ? {} : { 'session-id': 'session-one' };
    const first = await askAs(others, 'On port 6431.');
    await teach('The staging database of the walrus shop listens on port 7000 since today.');
    const answer = 'On port 7000, "since" today: \u00e9\u{1f600}\n\\ 1/2.';
    const second = await askAs({ 'session-id': 'session-two' }, answer);
    expect(second).not.toBe(first);
    expect(await goOn(answer, fork)).toBe(second);
  },
);

// Only reading is allowed here, so nothing is captured.
test.each(DIALECTS)(
  '%s: an hour later the same words without a name leave the first conversation its block',
  async (dialect) => {
    const { teach, goOn, askAs, clock } = await startForking(dialect);
    const reading = { 'x-svc-memory-mode': 'read' };
    await teach('The staging database of the walrus shop listens on port 6431.');
    const first = await askAs(reading, 'On port 6431.');
    clock.goOn(HOUR_MS + 1_000);
    await teach('The staging database of the walrus shop listens on port 7000 since today.');
    const second = await askAs(reading, 'On port 7000.');
    expect(second).not.toBe(first);
    expect(await goOn('On port 6431.', reading)).toBe(first);
    expect(await goOn('On port 7000.', reading)).toBe(second);
  },
);
