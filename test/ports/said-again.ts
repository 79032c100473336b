import { expect } from 'vitest';
import type { Memory } from '../../src/ports/memory.ts';
import { questionOf, recordOf } from '../support/records.ts';

/** What a memory makes of words that it holds already. */
export function saidAgainTests(
  memory: () => Memory,
  whole: (name: string, run: () => Promise<void>) => void,
): void {
  const patience = (): AbortSignal => AbortSignal.timeout(30_000);

  whole('R43: words that nobody vouches for are marked until a person says them', async () => {
    const hearsay = recordOf('The walrus gateway listens on port 7777 of the host oyster.', {
      source: 'unverified',
    });
    const marks = async (): Promise<readonly unknown[]> => {
      const question = questionOf('On which port does the walrus gateway listen?');
      const { passages } = await memory().recall(question, patience());
      const listed = await memory().list({ limit: 1 }, patience());
      const { digest, space } = hearsay;
      const held = await memory().retrieve({ digest, space }, patience());
      return [passages[0]?.source, listed[0]?.source, held?.source];
    };
    const { source, ...said } = hearsay;
    await memory().capture([hearsay], patience());
    expect(await marks()).toEqual([source, source, source]);
    expect(await memory().capture([hearsay], patience())).toEqual(['duplicate']);
    expect(await marks()).toEqual([source, source, source]);
    expect(await memory().capture([said], patience())).toEqual(['duplicate']);
    expect(await marks()).toEqual([undefined, undefined, undefined]);
  });

  whole('a fact that is stated again after its opposite is the newest one', async () => {
    const day = (date: number): number => Date.UTC(2026, 4, date);
    const said = async (text: string, at: number, isTimed?: true): Promise<void> => {
      const own = { at, fingerprint: `f${at}`, conversation: `c${at}` };
      await memory().capture([recordOf(text, { ...own, ...(isTimed && { isTimed }) })], patience());
    };
    const newest = async (): Promise<unknown> => {
      const [record] = await memory().list({ limit: 9 }, patience());
      return [record?.text, record?.at];
    };
    await said('Always use pnpm.', day(1), true);
    await said('Always use npm.', day(2), true);
    expect(await newest()).toEqual(['Always use npm.', day(2)]);
    // A history that is found later says nothing of the time.
    await said('Always use pnpm.', day(3));
    expect(await newest()).toEqual(['Always use npm.', day(2)]);
    await said('Always use pnpm.', day(4), true);
    expect(await newest()).toEqual(['Always use pnpm.', day(4)]);
    // An older statement that comes late, out of a transcript, renews nothing.
    await said('Always use npm.', day(3), true);
    expect(await newest()).toEqual(['Always use pnpm.', day(4)]);
  });
}
