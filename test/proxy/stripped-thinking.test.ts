import { expect, test } from 'vitest';
import { said, type WireItem } from '../support/dialect-wire.ts';
import { NAMED, QUESTION, SECOND, startTalk } from '../support/strict-talk.ts';

/**
 * A block that memory mode "write" took away stays away while bound thinking depends on that, and also after the client
 * has left this thinking out: the provider's cache has the prefix without the block.
 * platform.claude.com, preserved thinking, "Prefix checks" (read 2026-11-28): thinking of earlier turns may be left out.
 */

const UNBOUND = 'claude-sonnet-5';
const blocksIn = (body: string): string[] => body.match(/<svc-memory .*?<\/svc-memory>/g) ?? [];

/** As a client sends an old answer: without its thinking. */
function stripped(item: WireItem): WireItem {
  const content = item['content'] as readonly { readonly type: string }[];
  return said(
    'assistant',
    content.filter(({ type }) => type !== 'thinking'),
  );
}

test.each([{}, NAMED])(
  'a block that stayed away does not come back when old thinking is left out (%o)',
  async (named) => {
    const { ask, strict } = await startTalk();
    const first = await ask([said('user', QUESTION)], { headers: named, model: UNBOUND });
    expect(blocksIn(first.sent)).toHaveLength(1);
    let items = [said('user', QUESTION), stripped(first.item), said('user', 'Thank you.')];
    const second = await ask(items, { headers: named, model: UNBOUND });
    expect(blocksIn(second.sent)).toHaveLength(1);
    items.push(stripped(second.item));
    const next = async (text: string, headers: Readonly<Record<string, string>> = {}) => {
      items.push(said('user', text));
      const asked = await ask(items, { headers: { ...named, ...headers } });
      items.push(asked.item);
      return blocksIn(asked.sent)[0];
    };
    // The model binds its thinking from here on, and this answer is made without the block.
    expect(await next('Now in German, please.', { 'x-svc-memory-mode': 'write' })).toBeUndefined();
    expect(await next('Paint the mountains in winter.')).toBeUndefined();
    for (const text of ['And in summer.', 'And in spring.', SECOND]) {
      items = items.map((item) => (item['role'] === 'assistant' ? stripped(item) : item));
      // oxlint-disable-next-line no-await-in-loop -- Each prompt follows the answer before it.
      const block = await next(text);
      expect(block ?? '').not.toContain('6431');
    }
    expect([strict.refusals, strict.lost]).toEqual([[], []]);
  },
);
