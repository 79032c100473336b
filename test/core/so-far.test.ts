import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { exchangeBefore, groupExchanges } from '../../src/core/conversation/exchanges.ts';
import { humanItems, newestAnswered } from '../../src/core/recall/injections.ts';
import { viewOf } from '../support/view-of.ts';

const text = fc.constantFrom('', 'hello', 'do it', '<system-reminder>x</system-reminder>');
const message = fc.oneof(
  text.map((content) => ({ role: 'user', content })),
  text.map((content) => ({ role: 'assistant', content })),
  text.map((content) => ({ role: 'system', content })),
  fc.constant({
    role: 'assistant',
    content: [{ type: 'tool_use', id: 't', name: 'x', input: {} }],
  }),
  text.map((typed) => ({
    role: 'user',
    content: [
      { type: 'tool_result', tool_use_id: 't', content: 'r' },
      { type: 'text', text: typed },
    ],
  })),
);

test('what an item carries of the conversation is what reading all items gives', () => {
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 30 }), (messages) => {
      const { items } = viewOf('anthropic_messages', { messages });
      const exchanges = groupExchanges(items);
      items.forEach(({ soFar }, at) => {
        const seen = items.slice(0, at + 1);
        const humans: number[] = [];
        for (let human = soFar.humans; human !== undefined; human = human.before) {
          humans.unshift(human.index);
        }
        expect(humans).toEqual(seen.flatMap(({ humanText }, i) => (humanText === '' ? [] : [i])));
        expect(soFar.tokens).toBe(seen.reduce((sum, { tokens }) => sum + tokens, 0));
        expect(soFar.firstHumanText).toBe(seen.find((it) => it.humanText !== '')?.humanText ?? '');
        const number = exchanges.findIndex(({ start, end }) => start <= at && at < end);
        expect(soFar.exchange.number).toBe(number);
        expect(soFar.exchange.start).toBe(exchanges[number]?.start);
      });
      expect(exchangeBefore(items)).toEqual(exchanges.at(-1));
    }),
  );
});

test('the newest prompt with its answer is the last one of all prompts', () => {
  const place = { tenant: 'local', scope: 's', space: 's', conversation: 'c', isStated: true };
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 30 }), (messages) => {
      const view = viewOf('anthropic_messages', { messages });
      const newest = humanItems(view, place).at(-1);
      expect(newestAnswered(view, place)).toEqual(newest?.answered);
    }),
  );
});
