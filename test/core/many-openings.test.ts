import { expect, test } from 'vitest';
import { viewRequest } from '../support/view-of.ts';
import { humanItems } from '../../src/core/recall/injections.ts';

/** Counts how often the items of a view are walked. */
function walksOf(prompts: number): number {
  const messages = [
    ...Array.from({ length: prompts }, (_, at) => ({ role: 'user', content: `Line ${at}.` })),
    { role: 'assistant', content: 'Noted.' },
    { role: 'user', content: 'Go on.' },
  ];
  const view = viewRequest(Buffer.from(JSON.stringify({ messages })), 'anthropic_messages');
  if (view === undefined) throw new Error('The body of this test is not a request.');
  let walks = 0;
  const items = new Proxy(view.items, {
    get: (target, name, receiver) => {
      if (name === 'find' || name === 'findIndex' || name === 'slice') walks += 1;
      return Reflect.get(target, name, receiver) as unknown;
    },
  });
  const place = { tenant: 't', scope: 's', space: 's', conversation: 'c', isStated: true };
  expect(humanItems({ ...view, items }, place)).toHaveLength(prompts + 1);
  return walks;
}

test('the opening answer is read once, however many prompts precede it', () => {
  expect(walksOf(3_900)).toBe(walksOf(4));
});
