import { expect, test } from 'vitest';
import { said } from '../support/dialect-wire.ts';
import { NAMED, QUESTION, SECOND, startTalk } from '../support/strict-talk.ts';

/**
 * Without a stated session id, conversations that begin with the same words have one name. If one of them is
 * bound, the others count as bound too. What was sent in front of their own, unbound thinking does not count.
 * platform.claude.com, preserved thinking, "Prefix checks" (read 2026-11-28): only some models check, and each block for
 * itself. test/support/strict-provider refuses or drops as that page says.
 */

const UNBOUND = 'claude-sonnet-5';
const blocksIn = (body: string): string[] => body.match(/<svc-memory .*?<\/svc-memory>/g) ?? [];
const asked = said('user', QUESTION);
const thanks = said('user', 'Thank you.');

test.each([{}, NAMED])(
  'a block that memory off took away comes back, though a bound conversation begins alike (%o)',
  async (named) => {
    const { ask, strict } = await startTalk();
    const unbound = { headers: named, model: UNBOUND };
    const first = await ask([asked], unbound);
    const blocks = blocksIn(first.sent);
    expect(blocks).toHaveLength(1);
    const before = [asked, first.item, said('user', SECOND)];
    const off = { ...named, 'x-svc-memory-mode': 'off' };
    const second = await ask(before, { headers: off, model: UNBOUND });
    expect(blocksIn(second.sent)).toEqual([]);

    const other = await ask([asked], { headers: named });
    await ask([asked, other.item, thanks], { headers: named });

    const third = await ask([...before, second.item, thanks], unbound);
    expect(blocksIn(third.sent)[0]).toEqual(blocks[0]);
    expect([strict.refusals, strict.lost]).toEqual([[], []]);
  },
);
