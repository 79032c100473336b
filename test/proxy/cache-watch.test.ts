import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { viewRequest } from '../../src/core/conversation/request-view.ts';
import type { RequestView } from '../../src/core/conversation/view.ts';
import { asksForHour } from '../../src/proxy/cache-watch.ts';

const MARK = { cache_control: { type: 'ephemeral', ttl: '1h' } };

const blocks = fc.array(
  fc.record({ text: fc.constantFrom('one', '"ttl":"1h"', 'two'), isMarked: fc.boolean() }),
  { maxLength: 3 },
);
const bodies = fc.array(
  fc.record({ messages: fc.array(blocks, { maxLength: 6 }), system: blocks, tools: blocks }),
  { minLength: 1, maxLength: 6 },
);

function written(parts: readonly { text: string; isMarked: boolean }[]) {
  return parts.map(({ text, isMarked }) => ({ type: 'text', text, ...(isMarked && MARK) }));
}

test('a cache of an hour is seen wherever its mark stands, whatever stood in the request before', () => {
  fc.assert(
    fc.property(bodies, (all) => {
      let view: RequestView | undefined;
      for (const { messages, system, tools } of all) {
        const list = messages.map((content) => ({ role: 'user', content: written(content) }));
        const body = { tools: written(tools), messages: list, system: written(system) };
        const bytes = Buffer.from(JSON.stringify(body));
        view = viewRequest(bytes, 'anthropic_messages', view);
        if (view === undefined) throw new Error('The body of this test is no request.');
        expect(asksForHour({ view })).toBe(bytes.includes('"ttl":"1h"'));
      }
    }),
    { numRuns: 100 },
  );
});
