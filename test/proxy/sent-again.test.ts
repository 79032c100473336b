import { expect, onTestFinished, test } from 'vitest';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { requestWith, said } from '../support/dialect-wire.ts';
import { openProxyStage } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput } from '../support/tool-session.ts';

const OLD = 12;
const STORED = OLD / 2;

const HISTORY = Array.from({ length: OLD }, (_, at) => [
  said('user', `Which port does the server falcon${at} listen on?`),
  said(
    'assistant',
    `The server falcon${at} listens on ${6400 + at}.\n${longOutput(`f${at}`, 300)}`,
  ),
]).flat();
const LAST = said('user', 'Remind me: which port does the server falcon0 listen on?');

test.each(DIALECTS)(
  'law 6: in %s a request that is sent again leaves out what it left out, and no more',
  async (dialect) => {
    // Nothing leaves a warm cache whose reads are next to free.
    const settings = { inputBudget: 1_000 };
    const stage = await openProxyStage({ folder: tempFolder(), settings, cacheRead: 0.001 });
    onTestFinished(() => stage.stop());
    const held = async (): Promise<number> => {
      const records = await stage.memory.list({ limit: 200 }, AbortSignal.timeout(30_000));
      const texts = new Set(records.map(({ text }) => text));
      return HISTORY.filter(({ content }) => texts.has(String(content))).length;
    };
    await stage.send(dialect, requestWith(dialect, [...HISTORY.slice(0, 2 * STORED), LAST]));
    await expect.poll(held, { timeout: 10_000 }).toBe(2 * STORED);
    stage.setClockAhead(301_000);
    await stage.send(dialect, requestWith(dialect, [...HISTORY, LAST]));
    expect(stage.rows.at(-1)).toMatchObject({
      continuityState: 'committed',
      elidedItems: 2 * STORED,
    });
    const first = stage.forwarded();
    // Now the memory holds the other exchanges too, and on a cold cache they could leave.
    await expect.poll(held, { timeout: 10_000 }).toBe(2 * OLD);
    stage.setClockAhead(602_000);
    await stage.send(dialect, requestWith(dialect, [...HISTORY, LAST]));
    expect(stage.forwarded()).toBe(first);
    const more = [said('assistant', 'It listens on 6400.'), said('user', 'Thank you.')];
    await stage.send(dialect, requestWith(dialect, [...HISTORY, LAST, ...more]));
    const kept = first.slice(0, first.indexOf('Remind me'));
    expect(stage.forwarded().startsWith(kept)).toBe(true);
  },
);
